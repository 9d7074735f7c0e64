// Which allocations of this process others may open, and by which handle: each is asked of the
// driver once.
//
// A buffer is found by its allocation's number, which is never used again, and not by its address:
// what is freed and allocated anew at the same address is another allocation, with another handle.
// That an allocation is gone is found out by asking for its number again, one at every look; the
// peers are then told, and close it.
//
// Threading: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "transports/cuda/device.h"

namespace kolo::cuda {

// A place in this process's memory, as another process can find it.
struct Exported {
  std::uint64_t buffer = 0;  // the allocation's number
  std::uint64_t base = 0;    // where it begins in this process
  std::uint64_t bytes = 0;   // how long it is
  std::uint64_t offset = 0;  // of the place, from the base
  IpcHandle handle{};
};

class IpcExports {
 public:
  explicit IpcExports(const Device& device) : device_(device) {}

  // Nothing where it cannot be opened by others; then why_not() says why.
  std::optional<Exported> find(const void* data, std::size_t bytes);
  const std::string& why_not() const { return why_not_; }

  // Looks whether an allocation that peers know is gone: at one of them each time, so that it costs
  // little to ask now and then.
  void look_for_gone();

  // The next allocation that is gone and that who counts with `seen` (from 0) has not been told of;
  // 0 where there is none. Of very many, the oldest are forgotten: IpcImports finds out by itself.
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
  std::deque<std::uint64_t> gone_;  // the last ones found
  std::uint64_t found_gone_ = 0;    // how many ever
  std::string why_not_;
};

}  // namespace kolo::cuda
