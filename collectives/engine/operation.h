// One operation of a communicator, from its issue to its end.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/engine/call_cache.h"
#include "collectives/engine/checked_call.h"
#include "collectives/executor/executor.h"
#include "collectives/work.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

class Engine;
class StreamExecutor;

// A persistent call, with all that it refers to except its buffers.
struct Plan {
  Call call;
  ServerPlan servers;
};

// Written by the issuing thread, then by the driver, until is_done; read-only afterwards. A
// blocking call keeps it on its stack. An asynchronous call shares it with the returned Work.
class Operation {
 public:
  // Not defaulted: make_shared<Operation>() would first fill the whole object with zeros.
  Operation() {}
  // A new operation for a Work to share, in pooled memory.
  static std::shared_ptr<Operation> make();
  // Shared by all Works whose operation had ended before they were made. Never written.
  static std::shared_ptr<Operation> done();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Executor* executor = nullptr;         // null if it runs on a device's stream
  StreamExecutor* on_stream = nullptr;  // enqueues it on `stream`
  void* stream = nullptr;
  bool is_captured = false;  // into a CUDA graph
  Binding binding;
  Update update;
  std::unique_ptr<const UserReduceOp>
      reducer;                          // owned copy of the user function, for asynchronous calls
  std::vector<std::size_t> lengths;     // storage of the lengths that the binding views
  std::chrono::milliseconds timeout{};  // from issue, or from the end of an absence (has_been_away)
  Deadline deadline{};                  // zero: not computed yet
  bool is_started = false;
  bool is_cached_call = false;      // the binding has a header and buffers only
  Deadline next_wait_report{};      // when to publish a long wait in the store; zero: not computed
  bool has_published_wait = false;  // wait edges are in the store, and calls were compared

  std::unique_ptr<Plan> plan;  // of a persistent operation

  std::vector<WorkCallback> callbacks;  // guarded by the engine's lock
  std::atomic<bool> is_done{false};
  std::optional<Error> failure;  // set before is_done

  std::weak_ptr<Engine> engine;  // for the progress of a Work

  // The engine's queue, intrusive so that an issue allocates nothing. `next` is written under the
  // engine's lock; the driver reads it without.
  std::atomic<Operation*> next{nullptr};
  Operation* previous = nullptr;
  // Messages only: the direction (Engine::direction_of), and the next message in it.
  std::size_t direction = kNoDirection;
  Operation* behind = nullptr;
  std::shared_ptr<Operation> self;  // keeps an asynchronous one alive until it is done
};

}  // namespace kolo::inline v0
