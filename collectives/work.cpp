#include "collectives/work.h"

#include <algorithm>
#include <vector>

#include "collectives/engine/engine.h"
#include "collectives/engine/operation.h"
#include "transports/base/check.h"

namespace kolo::inline v0 {

namespace {

// The engine of an operation in flight; null once its communicator is destroyed. A child of fork()
// shares sockets and memory with its parent: if it drove them, the parent would get wrong data.
std::shared_ptr<Engine> engine_of(const Operation& operation) {
  auto engine = operation.engine.lock();
  check(engine == nullptr || engine->is_in_creating_process(),
        "this Work was made before fork() and belongs to the parent process");
  return engine;
}

}  // namespace

bool Work::test() {
  check(is_valid(), "test() on a Work without an operation");
  if (operation_->is_done) return true;
  if (const auto engine = engine_of(*operation_)) engine->progress();
  return operation_->is_done;
}

void Work::wait() { wait(Deadline::max()); }

void Work::wait(Deadline deadline) {
  check(is_valid(), "wait() on a Work without an operation");
  if (operation_->is_done) {
    if (operation_->failure) throw Error(*operation_->failure);
    return;
  }
  // A destroyed communicator has ended all its operations.
  if (const auto engine = engine_of(*operation_)) {
    engine->wait(*operation_, deadline);
  } else if (operation_->failure) {
    throw Error(*operation_->failure);
  }
}

void Work::when_done(WorkCallback callback) {
  check(is_valid(), "when_done() on a Work without an operation");
  check(callback != nullptr, "when_done() with no function to call");
  const auto engine = engine_of(*operation_);
  const bool is_kept = engine && engine->call_when_done(*operation_, callback);
  if (!is_kept) callback(operation_->failure ? &*operation_->failure : nullptr);
}

void Work::start() {
  check(is_valid() && operation_->plan != nullptr,
        "start() on a Work that is not persistent; ask for CallOptions::is_persistent");
  const auto engine = engine_of(*operation_);
  check(engine != nullptr, "start() on a Work whose communicator is destroyed");
  engine->restart(operation_);
}

std::optional<std::size_t> wait_any(std::span<const Work> works, Deadline deadline) {
  const auto first_ended = [&]() -> std::optional<std::size_t> {
    const auto ended = std::ranges::find_if(
        works, [](const Work& work) { return work.is_valid() && work.operation_->is_done; });
    if (ended == works.end()) return std::nullopt;
    return ended - works.begin();
  };
  if (const auto ended = first_ended()) return ended;
  std::shared_ptr<Engine> engine;
  std::vector<const Operation*> operations;
  for (const Work& work : works) {
    if (!work.is_valid()) continue;
    const auto its_engine = engine_of(*work.operation_);
    check(engine == nullptr || its_engine == engine,
          "wait_any() for operations of several communicators");
    engine = its_engine;
    operations.push_back(work.operation_.get());
  }
  check(!operations.empty(), "wait_any() without an operation");
  // A destroyed communicator has ended all its operations.
  if (engine != nullptr && !engine->wait_any(operations, deadline)) return std::nullopt;
  return first_ended();
}

}  // namespace kolo::inline v0
