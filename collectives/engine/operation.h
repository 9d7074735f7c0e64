// One operation of a communicator, from its issue to its end.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/engine/call_cache.h"
#include "collectives/engine/checked_call.h"
#include "collectives/executor/executor.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo {

class Engine;
class StreamExecutor;

// A call to be issued again and again, with all that it refers to but the buffers.
struct Plan {
  Call call;
  ServerPlan servers;
};

// Written by whoever issues it, then by whoever drives the engine, until is_done; read-only
// afterwards. Blocking calls keep it on their stack, asynchronous ones share it with the Work that
// they return.
class Operation {
 public:
  // Not defaulted: make_shared<Operation>() would write zeros to all of it first.
  Operation() {}
  // One for a Work to share; memory of those before it serves again.
  static std::shared_ptr<Operation> make();
  // What all Works share whose operation had ended before they were there. Nobody writes to it.
  static std::shared_ptr<Operation> done();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Executor* executor = nullptr;         // null where it is for a device's stream:
  StreamExecutor* on_stream = nullptr;  // which is given what this says
  void* stream = nullptr;
  bool is_captured = false;  // into a graph
  Binding binding;
  Update update;
  std::unique_ptr<const UserReduceOp>
      reducer;                          // a user function's, where no caller waits and keeps it
  std::vector<std::size_t> lengths;     // what the binding's lengths are a view of
  std::chrono::milliseconds timeout{};  // from its issue on, or from when somebody looks again
  Deadline deadline{};                  // zero: not yet needed
  bool is_started = false;
  bool is_cached_call = false;  // its binding is header and buffers, and nothing else
  Deadline next_wait_report{};  // when who waits for long says so in the store; zero: not yet known
  bool has_published_wait = false;  // there, and has compared what others say they called

  std::unique_ptr<Plan> plan;  // of a persistent one

  std::vector<WorkCallback> callbacks;  // under the engine's lock
  std::atomic<bool> is_done{false};
  std::optional<Error> failure;  // set before is_done

  std::weak_ptr<Engine> engine;  // where a Work makes progress

  // The queue of the engine: no allocation to issue. `next` is written under the engine's lock, and
  // read without it by who drives.
  std::atomic<Operation*> next{nullptr};
  Operation* previous = nullptr;
  // Of a message: to whom or from whom (Engine::direction_of), and the next one there.
  std::size_t direction = kNoDirection;
  Operation* behind = nullptr;
  std::shared_ptr<Operation> self;  // an asynchronous one lives at least until it is done
};

}  // namespace kolo
