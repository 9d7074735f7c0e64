// One peer's allocations, mapped into this process: each is opened once and closed when the peer
// says that it is gone, when another one lies where it was, when too many are open, or with the
// peer. What other channels of this process have open, too, stays open for them (openings.h).
//
// A mapping that a stream may still use is not closed: whoever uses one names the work that does
// (numbers that grow), and says how far that work has come. What lies where such a one is still
// open is not opened meanwhile.
//
// Threading: one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "transports/cuda/ipc_exports.h"

namespace kolo::cuda {

class IpcImports final : private IpcMappings::Worker {
 public:
  // `whose`: "rank 3", for messages. `is_same_process`: the peer's pointers are ours. At most
  // `most` stay open, unless more are in use at once. `is_given_done`: whether all work is done
  // that was given before; asked from any thread, after give().
  IpcImports(const Device& device, std::string whose, bool is_same_process, std::size_t most = 64,
             std::function<bool()> is_given_done = nullptr)
      : device_(device),
        whose_(std::move(whose)),
        is_same_process_(is_same_process),
        most_(most),
        is_given_done_(std::move(is_given_done)) {}
  ~IpcImports() { close_all(); }
  IpcImports(const IpcImports&) = delete;
  IpcImports& operator=(const IpcImports&) = delete;

  // The peer's place in this address space, for the work number `work`. Null where other work must
  // be done first, which has been given: ask again. Error kSystem where the driver will not open
  // it; kProtocol for a place outside of its allocation, or in one that is not as it was when it
  // was opened, or is longer than what the driver has there, or that lies where memory is in use
  // for work that is not given.
  std::byte* map(const Exported& place, std::size_t bytes, std::uint64_t work);

  // The peer has freed it. It is closed at once, or when the work that uses it is done.
  void forget(std::uint64_t buffer);

  // Work up to this number has been given to streams, and will be done whatever else comes.
  void give(std::uint64_t work) { given_.store(work, std::memory_order_release); }
  // Work up to this number is done; closes what has waited for that.
  void finish(std::uint64_t work);

  // All of them; nothing may use them any more.
  void close_all() noexcept;

  std::size_t size() const { return open_.size(); }

 private:
  struct Open {
    Exported place;
    Device::Opened opened;
    std::uint64_t last_work = 0;
    bool is_gone = false;
  };

  std::uint64_t done() const override;
  std::uint64_t given() const override { return given_.load(std::memory_order_acquire); }

  std::byte* find_open(const Exported& place, std::uint64_t work);
  bool is_taken(const Exported& place) const;
  void close_where_done();
  void make_room();

  const Device& device_;
  const std::string whose_;
  const bool is_same_process_;
  const std::size_t most_;
  std::vector<Open> open_;
  const std::function<bool()> is_given_done_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> given_ = 0;
};

}  // namespace kolo::cuda
