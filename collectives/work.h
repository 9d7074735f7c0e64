// Handle of an operation in flight.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "../transports/error.h"
#include "../transports/transport.h"

namespace kolo::inline v0 {

class Operation;

// Called when an operation has ended. `failure` is null on success.
using WorkCallback = std::function<void(const Error* failure)>;

// Copyable; all copies refer to the same operation. Threads may share them. Exception: during
// start(), no other thread may be inside a call on a copy. The buffers must live until the
// operation is done. Destroying a handle neither cancels nor waits. Call wait() before the
// communicator is destroyed: its destructor aborts operations in flight, which is a failure on the
// other ranks.
class Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}

  bool is_valid() const { return operation_ != nullptr; }

  // True once the operation has ended, with success or not (wait() tells which); on a stream, once
  // the device has done it. Makes progress for the whole communicator, without blocking.
  bool test();

  // Returns when the operation is done; throws its failure. May be called again. The deadline is
  // the operation's timeout, counted from its issue (CallOptions::timeout), or `deadline` if that
  // is earlier. When `deadline` passes, kDeadline without a peer (Error::peer() is kNoPeer) is
  // thrown; the operation goes on, and may be waited for again.
  void wait();
  void wait(Deadline deadline);

  // Calls `callback` once the operation has ended: at once if it has, else on the thread whose call
  // ends it. The callback may issue operations, but must not wait for one. If it throws, the
  // program ends. It may destroy the communicator, also on the progress thread, unless a blocking
  // operation of that communicator can be the call that ends it.
  void when_done(WorkCallback callback);

  // Issues a persistent operation (CallOptions::is_persistent) again, with the same arguments and
  // buffers. This counts as its issue: every rank starts operations in the same order. Between two
  // starts, and before the first, the operation counts as done. A callback belongs to the start
  // that is in flight. std::invalid_argument: the operation is in flight, or not persistent.
  void start();

 private:
  friend std::optional<std::size_t> wait_any(std::span<const Work> works, Deadline deadline);
  std::shared_ptr<Operation> operation_;
};

// Waits until one of the operations has ended, as MPI_Waitany. Returns the index of the first ended
// one in `works`; its wait() then throws its failure, if it has one. Returns nullopt once
// `deadline` has passed; the operations go on. For messages that are served in the order of their
// arrival: list the peer that was served last at the end. Works without an operation are skipped.
// All operations belong to one communicator. std::invalid_argument: they do not, or there is none.
std::optional<std::size_t> wait_any(std::span<const Work> works,
                                    Deadline deadline = Deadline::max());

}  // namespace kolo::inline v0
