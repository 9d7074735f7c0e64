// Memory that one rank's peers can map: what Transport::allocate gives out over shm.
//
// Each region is a sealed memfd. A peer gets its descriptor over the pair's socket the first time
// that something in it is offered, and maps it; from then on it reads, and answers, where the bytes
// lie. The region ends with the last copy of its handle; peers are told, and unmap it.
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

namespace kolo::shm {

// Where a region lies in its owner's address space.
struct RegionPlace {
  std::uint64_t id = 0;  // never used again; 0: none
  std::byte* data = nullptr;
  std::size_t bytes = 0;

  bool holds(const std::byte* first, std::size_t count) const {
    return first >= data && count <= bytes &&
           static_cast<std::size_t>(first - data) <= bytes - count;
  }
};

class Regions : public std::enable_shared_from_this<Regions> {
 public:
  // Zeroed, all pages present, in huge pages where the system gives them to shared memory. Error
  // kSystem where the kernel refuses.
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes);

  // Grows with every region that comes or goes.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::vector<RegionPlace> places() const;

  // Calls `use` with the region's descriptor; false where it is gone.
  bool with_descriptor(std::uint64_t id, const std::function<bool(int descriptor)>& use) const;

  // Makes the pages of these bytes this process's alone, so that no peer writes to them any more.
  // Nothing where their region is gone.
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

}  // namespace kolo::shm
