// One operation of a communicator, from its issue to its end.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "collectives/executor.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo {

class Engine;

// Written by whoever issues it, then by whoever drives the engine, until is_done; read-only
// afterwards. Blocking calls keep it on their stack, asynchronous ones share it with the Work that
// they return.
class Operation {
 public:
  Executor* executor = nullptr;
  Binding binding;
  Update update;
  Deadline deadline{};  // zero: not yet needed
  bool is_started = false;
  bool has_compared = false;  // who waits for long compares, once, what others say they called

  std::atomic<bool> is_done{false};
  std::optional<Error> failure;  // set before is_done

  std::weak_ptr<Engine> engine;  // where a Work makes progress

  // The queue of the engine: no allocation to issue.
  Operation* next = nullptr;
  std::shared_ptr<Operation> self;  // an asynchronous one lives at least until it is done
};

}  // namespace kolo
