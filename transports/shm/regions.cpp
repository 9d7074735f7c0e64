#include "transports/shm/regions.h"

#include <algorithm>
#include <utility>

namespace kolo::inline v0::shm {

std::shared_ptr<std::byte[]> Regions::allocate(std::size_t bytes) {
  posix::SharedMemory memory(std::max<std::size_t>(bytes, 1), posix::Pages::kPresent);
  std::byte* const data = memory.bytes().data();
  const std::uint64_t id = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  // Made before the region is listed and without the lock: its deleter takes the lock, and accepts
  // that the region is not listed.
  std::shared_ptr<std::byte[]> handle(
      data, [regions = shared_from_this(), id](std::byte*) { regions->free(id); });
  const std::lock_guard lock(mutex_);
  regions_.push_back({{id, data, memory.bytes().size()}, std::move(memory)});
  version_.fetch_add(1, std::memory_order_release);
  return handle;
}

void Regions::free(std::uint64_t id) noexcept {
  posix::SharedMemory freed;  // unmapped after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(regions_.begin(), regions_.end(),
                                  [id](const Region& region) { return region.place.id == id; });
  if (found == regions_.end()) return;
  freed = std::move(found->memory);
  regions_.erase(found);
  version_.fetch_add(1, std::memory_order_release);
}

std::vector<RegionPlace> Regions::places() const {
  const std::lock_guard lock(mutex_);
  std::vector<RegionPlace> places;
  for (const Region& region : regions_) places.push_back(region.place);
  return places;
}

bool Regions::with_descriptor(std::uint64_t id, const std::function<bool(int)>& use) const {
  const std::lock_guard lock(mutex_);
  for (const Region& region : regions_) {
    if (region.place.id == id) return use(region.memory.descriptor());
  }
  return false;
}

void Regions::make_private(std::span<std::byte> bytes) const noexcept {
  const std::lock_guard lock(mutex_);
  const bool is_there = std::any_of(regions_.begin(), regions_.end(), [bytes](const auto& region) {
    return region.place.holds(bytes.data(), bytes.size());
  });
  if (is_there) posix::make_private(bytes);
}

}  // namespace kolo::inline v0::shm
