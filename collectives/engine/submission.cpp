#include "collectives/engine/submission.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/engine/operation.h"

namespace kolo::inline v0::submission {
namespace {

bool is_default(const CallOptions& call) {
  return call.algorithm.empty() && call.segment_bytes == 0 && !call.is_persistent &&
         call.timeout.count() == 0 && call.scale == 1 && !call.stream;
}

void require_no_update(const Call& call, const Update& update) {
  if (!call.stream || !update) return;
  throw std::invalid_argument(std::string(to_string(call.collective)) +
                              ": an update runs on the host: it cannot run on a device's stream");
}

}  // namespace

void run(Engine& engine, Call call, Update update) {
  if (call.is_persistent) {
    throw std::invalid_argument(std::string(to_string(call.collective)) +
                                ": a persistent operation is planned by the ..._async form, and "
                                "issued by Work::start()");
  }
  require_no_update(call, update);
  Operation operation;
  operation.update = std::move(update);
  engine.run(call, operation);
}

Work issue(const std::shared_ptr<Engine>& engine, Call call, Update update) {
  require_no_update(call, update);
  const std::shared_ptr<Operation> operation = Operation::make();
  if (call.reducer != nullptr) {
    operation->reducer = std::make_unique<const UserReduceOp>(*call.reducer);
    call.reducer = operation->reducer.get();
  }
  operation->update = std::move(update);
  operation->engine = engine;
  if (call.is_persistent) {
    engine->plan(call, *operation);
  } else {
    engine->issue(call, operation);
  }
  return Work(operation);
}

bool ran_from_cache(Engine& engine, CallKey key, const void* in, void* out,
                    const CallOptions& call) {
  return is_default(call) && engine.run_cached(key, in, out);
}

std::optional<Work> issued_from_cache(const std::shared_ptr<Engine>& engine, CallKey key,
                                      const void* in, void* out, const CallOptions& call) {
  if (!is_default(call)) return std::nullopt;
  std::shared_ptr<Operation> operation = Engine::issue_cached(engine, key, in, out);
  if (operation == nullptr) return std::nullopt;
  return Work(std::move(operation));
}

}  // namespace kolo::inline v0::submission
