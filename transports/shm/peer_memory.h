// A peer's memory, as this rank can reach it: regions that it has handed over, mapped here; and
// all the rest by the kernel's copy from process to process (process_vm_readv), where a trial
// showed that it is allowed.
//
// Source of the second: Goglin and Moreaud, "KNEM", 2013, and the CMA of Open MPI's vader and of
// UCX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "transports/posix/descriptor.h"
#include "transports/posix/shared_memory.h"

namespace kolo::shm {

// What a frame says of memory that is offered in the place of a slot.
struct Offer {
  std::uint64_t region = 0;   // 0: in none, to be copied by the kernel
  std::uint64_t address = 0;  // in the region, or in the owner's process
};

// Something in this process that a peer can try to read, to see whether it can.
struct ReadProbe {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
};
ReadProbe own_read_probe();

class PeerMemory {
 public:
  // `process`: the peer's, as numbered here; 0 or less: it cannot be seen.
  explicit PeerMemory(int process) : process_(process) {}

  // Tries it, and remembers.
  bool can_read(const ReadProbe& trial) noexcept;
  bool is_readable() const { return is_readable_; }

  // Copies from the peer's `address`. 0, or the errno: ESRCH where it has ended.
  int read(std::uint64_t address, std::span<std::byte> into) const noexcept;

  // Error kSystem or kProtocol where it cannot be mapped.
  void map(std::uint64_t region, posix::Descriptor descriptor, std::size_t bytes);
  void unmap(std::uint64_t region) noexcept { regions_.erase(region); }

  // Null where the region is not mapped, or not so long.
  std::byte* find(const Offer& offer, std::size_t bytes) const;

 private:
  int process_;
  bool is_readable_ = false;
  std::unordered_map<std::uint64_t, posix::SharedMemory> regions_;
};

}  // namespace kolo::shm
