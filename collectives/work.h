// A handle on an operation in flight.
#pragma once

#include <memory>

#include "transports/transport.h"

namespace kolo {

class Operation;

// Copyable; all copies mean the same operation. The buffers must live until it is done. Dropping a
// handle neither cancels nor waits: the communicator's destructor does.
class Work {
 public:
  Work() = default;
  explicit Work(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}

  bool is_valid() const { return operation_ != nullptr; }

  // True once the operation is done, well or badly; makes progress for the whole communicator,
  // without blocking.
  bool test();

  // Returns when it is done; throws what went wrong. May be called again. The deadline is the
  // communicator's timeout, counted from the issue of the operation, or the one given here if that
  // is earlier.
  void wait();
  void wait(Deadline deadline);

 private:
  std::shared_ptr<Operation> operation_;
};

}  // namespace kolo
