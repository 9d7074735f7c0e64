// Memory that a rank's peers can map: Transport::allocate() of shm returns it.
//
// Each region is a sealed memfd. A peer gets its descriptor over the pair's socket with the first
// offer of memory in it, and maps it. From then on the peer reads and answers in place. The region
// ends with the last copy of its handle; peers are told and unmap it.
//
// Threading: all calls are safe from several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "transports/posix/shared_memory.h"

namespace kolo::inline v0::shm {

// Where a region lies in its owner's address space.
struct RegionPlace {
  std::uint64_t id = 0;  // never reused; 0: none
  std::byte* data = nullptr;
  std::size_t bytes = 0;

  bool holds(const std::byte* first, std::size_t count) const {
    return first >= data && count <= bytes &&
           static_cast<std::size_t>(first - data) <= bytes - count;
  }
};

class Regions : public std::enable_shared_from_this<Regions> {
 public:
  // Zeroed, all pages present, in huge pages if the system allows them for shared memory. Error
  // kSystem if the kernel refuses.
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes);

  // Grows with every allocated or freed region.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::vector<RegionPlace> places() const;

  // Calls `use` with the region's descriptor and returns its result; false if the region is gone.
  bool with_descriptor(std::uint64_t id, const std::function<bool(int descriptor)>& use) const;

  // Makes the pages of these bytes private, so that no peer can write to them any more. Does
  // nothing if their region is gone.
  void make_private(std::span<std::byte> bytes) const noexcept;

 private:
  struct Region {
    RegionPlace place;
    posix::SharedMemory memory;
  };

  void free(std::uint64_t id) noexcept;

  mutable std::mutex mutex_;
  std::vector<Region> regions_;
  std::atomic<std::uint64_t> last_id_{0};
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace kolo::inline v0::shm
