#include "collectives/work.h"

#include "collectives/engine.h"
#include "collectives/operation.h"
#include "transports/check.h"

namespace kolo {

bool Work::test() {
  check(is_valid(), "test() on a Work of no operation");
  if (operation_->is_done) return true;
  if (const auto engine = operation_->engine.lock()) engine->progress();
  return operation_->is_done;
}

void Work::wait() { wait(Deadline::max()); }

void Work::wait(Deadline deadline) {
  check(is_valid(), "wait() on a Work of no operation");
  // A communicator that is gone has ended all its operations.
  if (const auto engine = operation_->engine.lock()) {
    engine->wait(*operation_, deadline);
  } else if (operation_->failure) {
    throw Error(*operation_->failure);
  }
}

}  // namespace kolo
