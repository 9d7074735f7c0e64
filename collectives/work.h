// A handle on an operation in flight.
#pragma once

#include <functional>
#include <memory>

#include "../transports/error.h"
#include "../transports/transport.h"

namespace kolo {

class Operation;

// What is called when an operation has ended: null where it went well, else what went wrong.
using WorkCallback = std::function<void(const Error* failure)>;

// Copyable; all copies mean the same operation. Threads may share them, but for start(), which is
// for when no other thread is in a call on one. The buffers must live until it is done. Dropping a
// handle neither cancels nor waits: wait() before the communicator goes, whose destructor aborts
// what is in flight, which the other ranks hear of.
class Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}

  bool is_valid() const { return operation_ != nullptr; }

  // True once the operation is done, well or badly, which wait() says (on a stream: once the device
  // has done it); makes progress for the whole communicator, without blocking.
  bool test();

  // Returns when it is done; throws what went wrong. May be called again. The deadline is the
  // communicator's timeout, counted from the issue of the operation (CallOptions::timeout), or the
  // one given here if that is earlier: then kDeadline of nobody (Error::peer() is kNoPeer) is
  // thrown, the operation goes on, and may be waited for again.
  void wait();
  void wait(Deadline deadline);

  // Calls `callback` once this operation has ended: at once where it has, else on the thread whose
  // call makes it end. It may issue operations, but must not wait for any; what it throws ends the
  // program. It may destroy the communicator, also on its progress thread, but where a blocking
  // operation of that communicator may be what makes it end.
  void when_done(WorkCallback callback);

  // Issues a persistent operation (CallOptions::is_persistent) once more: the same call, of the
  // same buffers. That is its issue: every rank starts in the same order. std::invalid_argument
  // while it is in flight, or where it is not a persistent one.
  // Between two starts, and before the first, it counts as done; a callback is for the start that
  // is in flight.
  void start();

 private:
  std::shared_ptr<Operation> operation_;
};

}  // namespace kolo
