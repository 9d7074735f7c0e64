// One peer's allocations, mapped into this process: each is opened once and closed when the peer
// says that it is gone, when another one lies where it was, when too many are open, or with the
// peer.
//
// A mapping that a stream may still use is not closed: whoever uses one names the work that does
// (numbers that grow), and says how far that work has come.
//
// Threading: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/cuda/exports.h"

namespace kolo::cuda {

class Imports {
 public:
  // `whose`: "rank 3", for messages. `is_same_process`: the peer's pointers are ours. At most
  // `most` stay open, unless more are in use at once.
  Imports(const Device& device, std::string whose, bool is_same_process, std::size_t most = 64)
      : device_(device), whose_(std::move(whose)), is_same_process_(is_same_process), most_(most) {}
  ~Imports() { close_all(); }
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  // The peer's place in this address space, for the work number `work`. Error kSystem where the
  // driver will not open it; kProtocol for a place outside of its allocation, or in one that is not
  // as it was when it was opened, or is longer than what the driver has there.
  std::byte* map(const Exported& place, std::size_t bytes, std::uint64_t work);

  // The peer has freed it. It is closed at once, or when the work that uses it is done.
  void forget(std::uint64_t buffer);

  // Work up to this number is done; closes what has waited for that.
  void finish(std::uint64_t work);

  // All of them; nothing may use them any more.
  void close_all() noexcept;

  std::size_t size() const { return open_.size(); }

 private:
  struct Open {
    Exported place;
    std::byte* mapped = nullptr;
    std::uint64_t last_work = 0;
    bool is_gone = false;
  };

  void close_where_done();
  void make_room();

  const Device& device_;
  const std::string whose_;
  const bool is_same_process_;
  const std::size_t most_;
  std::vector<Open> open_;
  std::uint64_t done_ = 0;
};

}  // namespace kolo::cuda
