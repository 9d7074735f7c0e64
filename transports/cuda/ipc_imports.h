// Mapped allocations of one peer. Each is opened once. It is closed when the peer has reported it
// freed, when another allocation takes its place, when too many are open, or at the end of the
// channel. A mapping that other channels of this process use stays open for them (ipc_mappings.h).
//
// A closing may wait for all streams of the context. So mappings are closed between operations
// (finish), and inside one only if another allocation needs the place; then it is put off until no
// stream waits for a peer (Device::close).
//
// A mapping that a stream may still use is not closed. So each use names the number of its work
// (increasing), and finish() reports how far the work is done. Until such a mapping is closed, no
// other allocation at the same place is opened.
//
// Threading: one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "transports/cuda/ipc_exports.h"

namespace kolo::inline v0::cuda {

class IpcImports final : private IpcMappings::Worker {
 public:
  // `whose`: "rank 3", for messages. `is_same_process`: the peer's pointers are valid here. At most
  // `most` mappings stay open, unless more are in use at once. `is_given_done`: returns whether all
  // work that was given before is done; called from any thread, after give().
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

  // Returns the peer's place in this address space, for work number `work`. Null if other work,
  // already given to streams, must finish first: call again later. Error kSystem if the driver
  // refuses. Error kProtocol for a place outside of its allocation; an allocation that has changed
  // since it was opened; one that is longer than the driver's; or one at the place of memory still
  // in use by work that is not given yet.
  std::byte* map(const Exported& place, std::size_t bytes, std::uint64_t work);

  // The peer has freed `buffer`. It is closed by finish(), when the work that uses it is done.
  void forget(std::uint64_t buffer);

  // Work up to this number has been given to streams and will be done in any case.
  void give(std::uint64_t work) { given_.store(work, std::memory_order_release); }
  // Work up to this number is done. Closes the mappings that waited for it. Call it between
  // operations.
  void finish(std::uint64_t work);

  // Closes all mappings. They must not be in use.
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
  bool is_taken(const Exported& place);
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

}  // namespace kolo::inline v0::cuda
