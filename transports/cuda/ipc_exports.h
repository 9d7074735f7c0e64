// Cache of IPC handles for allocations of this process: one driver call per allocation.
//
// An allocation is found by its number, which is never used again, not by its address: memory that
// is freed and allocated again at the same address has a new number and a new handle. To detect a
// freed allocation, each look asks for the number of one known address again. The peers are then
// told to close it.
//
// Threading: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

// Place in this process's memory, as another process can find it.
struct Exported {
  std::uint64_t buffer = 0;  // the allocation's number
  std::uint64_t base = 0;    // its address in this process
  std::uint64_t bytes = 0;   // size of the allocation
  std::uint64_t offset = 0;  // of the place, from the base
  IpcHandle handle{};
};

class IpcExports {
 public:
  explicit IpcExports(const Device& device) : device_(device) {}

  // Nothing if other processes cannot open it; why_not() then tells the reason.
  std::optional<Exported> find(const void* data, std::size_t bytes);
  const std::string& why_not() const { return why_not_; }

  // Checks whether one of the known allocations is gone; the next call checks the next one. So a
  // call is cheap.
  void look_for_gone();

  // Returns the next freed allocation that the caller has not seen, 0 if there is none. `seen` is
  // the caller's counter, from 0. The oldest entries of a long list are dropped; IpcImports then
  // detects the freed allocation by itself.
  std::uint64_t next_gone(std::uint64_t& seen) const;

  std::size_t size() const { return known_.size(); }

 private:
  struct Known {
    Pointer pointer;
    IpcHandle handle{};
  };

  const Device& device_;
  std::vector<Known> known_;
  std::size_t next_look_ = 0;
  std::deque<std::uint64_t> gone_;  // the last ones
  std::uint64_t found_gone_ = 0;    // total number
  std::string why_not_;
};

}  // namespace kolo::inline v0::cuda
