#include "transports/cuda/imports.h"

#include <fmt/format.h>
#include <algorithm>

#include "transports/error.h"

namespace kolo::cuda {

std::byte* Imports::map(const Exported& place, std::size_t bytes, std::uint64_t work) {
  if (place.offset > place.bytes || bytes > place.bytes - place.offset) {
    throw Error(ErrorCode::kProtocol, kNoPeer,
                fmt::format("{} offers {} bytes at {} of an allocation of {} bytes", whose_, bytes,
                            place.offset, place.bytes));
  }
  if (is_same_process_) return reinterpret_cast<std::byte*>(place.base) + place.offset;
  for (Open& open : open_) {
    if (open.place.buffer == place.buffer && !open.is_gone) {
      if (open.place.base != place.base || open.place.bytes != place.bytes) {
        throw Error(ErrorCode::kProtocol, kNoPeer,
                    fmt::format("{} offers a part of an allocation of {} bytes by the number of "
                                "another, which has {}",
                                whose_, place.bytes, open.place.bytes));
      }
      open.last_work = std::max(open.last_work, work);
      return open.mapped + place.offset;
    }
    // Two allocations cannot lie in one place: the older one has been freed.
    const bool begins_in_it = place.base - open.place.base < open.place.bytes;
    const bool has_its_beginning = open.place.base - place.base < place.bytes;
    open.is_gone |= begins_in_it || has_its_beginning;
  }
  close_where_done();
  make_room();
  std::byte* const mapped = device_.open(place.handle, place.bytes, whose_);
  open_.push_back({place, mapped, work, false});
  return open_.back().mapped + place.offset;
}

void Imports::forget(std::uint64_t buffer) {
  for (Open& open : open_) open.is_gone |= open.place.buffer == buffer;
  close_where_done();
}

void Imports::finish(std::uint64_t work) {
  done_ = std::max(done_, work);
  close_where_done();
}

void Imports::close_where_done() {
  std::erase_if(open_, [this](const Open& open) {
    if (!open.is_gone || open.last_work > done_) return false;
    device_.close(open.mapped);
    return true;
  });
}

// For one more: those go whose last work is the oldest, if it is done.
void Imports::make_room() {
  while (open_.size() >= most_) {
    const auto oldest = std::min_element(
        open_.begin(), open_.end(),
        [](const Open& one, const Open& other) { return one.last_work < other.last_work; });
    if (oldest->last_work > done_) return;
    device_.close(oldest->mapped);
    open_.erase(oldest);
  }
}

void Imports::close_all() noexcept {
  for (const Open& open : open_) device_.close(open.mapped);
  open_.clear();
}

}  // namespace kolo::cuda
