#include "collectives/work.h"

#include "collectives/engine/engine.h"
#include "collectives/engine/operation.h"
#include "transports/base/check.h"

namespace kolo {

bool Work::test() {
  check(is_valid(), "test() on a Work without an operation");
  if (operation_->is_done) return true;
  if (const auto engine = operation_->engine.lock()) engine->progress();
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
  if (const auto engine = operation_->engine.lock()) {
    engine->wait(*operation_, deadline);
  } else if (operation_->failure) {
    throw Error(*operation_->failure);
  }
}

void Work::when_done(WorkCallback callback) {
  check(is_valid(), "when_done() on a Work without an operation");
  check(callback != nullptr, "when_done() with no function to call");
  const auto engine = operation_->engine.lock();
  const bool is_kept = engine && engine->call_when_done(*operation_, callback);
  if (!is_kept) callback(operation_->failure ? &*operation_->failure : nullptr);
}

void Work::start() {
  check(is_valid() && operation_->plan != nullptr,
        "start() on a Work that is not persistent; ask for CallOptions::is_persistent");
  const auto engine = operation_->engine.lock();
  check(engine != nullptr, "start() on a Work whose communicator is destroyed");
  engine->restart(operation_);
}

}  // namespace kolo
