// Access to a peer's memory: regions that it has passed are mapped here. All other memory is copied
// by the kernel (process_vm_readv) if a trial read has shown that it is allowed.
//
// Source of the kernel's copy: Goglin and Moreaud, "KNEM", 2013, and cross memory attach (CMA) in
// Open MPI's vader and in UCX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "transports/posix/descriptor.h"
#include "transports/posix/shared_memory.h"

namespace kolo::inline v0::shm {

// Place of memory that a frame offers instead of a slot.
struct Offer {
  std::uint64_t region = 0;   // 0: none, copied by the kernel
  std::uint64_t address = 0;  // offset in the region, or address in the owner's process
};

// A value in this process for a peer's trial read.
struct ReadProbe {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
};
ReadProbe own_read_probe();

class PeerMemory {
 public:
  // `process`: the peer's process id in this pid namespace; 0 or less if unknown.
  explicit PeerMemory(int process) : process_(process) {}

  // Makes the trial read and remembers its result.
  bool can_read(const ReadProbe& trial) noexcept;
  bool is_readable() const { return is_readable_; }

  // Copies from the peer's `address`. Returns 0 or errno; ESRCH if the peer has ended.
  int read(std::uint64_t address, std::span<std::byte> into) const noexcept;

  // Error kSystem or kProtocol if it cannot be mapped.
  void map(std::uint64_t region, posix::Descriptor descriptor, std::size_t bytes);
  void unmap(std::uint64_t region) noexcept { regions_.erase(region); }

  // Returns null if the region is not mapped or too short.
  std::byte* find(const Offer& offer, std::size_t bytes) const;

 private:
  int process_;
  bool is_readable_ = false;
  std::unordered_map<std::uint64_t, posix::SharedMemory> regions_;
};

}  // namespace kolo::inline v0::shm
