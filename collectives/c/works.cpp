// Work handles of the C interface.
#include <chrono>
#include <vector>

#include "collectives/c/handles.h"

namespace kolo::inline v0::c_interface {

namespace {

Work& held(kolo_work* work) {
  if (work == nullptr) refuse("the work handle is null");
  return work->work;
}

// The same as for a communicator.
template <typename Body>
kolo_result counted(const kolo_work* work, Body&& body) noexcept {
  if (work == nullptr || work->shared == nullptr) return guarded(nullptr, std::forward<Body>(body));
  const std::shared_ptr<Shared> shared = work->shared;  // a callback may free the work
  shared->calls.enter_work();
  const kolo_result result = guarded(&shared->last, std::forward<Body>(body));
  shared->calls.leave(RunningCalls::Kind::kCall);
  return result;
}

Deadline limit_in(std::int64_t timeout_ms) {
  if (timeout_ms < 0) return Deadline::max();
  const auto now = Clock::now();
  const auto room = std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::max() - now);
  return timeout_ms >= room.count() ? Deadline::max() : now + std::chrono::milliseconds(timeout_ms);
}

}  // namespace

}  // namespace kolo::inline v0::c_interface

using namespace kolo;
using namespace kolo::c_interface;

kolo_result kolo_test(kolo_work* work, int* is_done) {
  return counted(work, [&] {
    if (is_done == nullptr) refuse("`is_done` is null; the result is stored there");
    *is_done = held(work).test() ? 1 : 0;
  });
}

kolo_result kolo_wait(kolo_work* work) {
  return counted(work, [&] { held(work).wait(); });
}

kolo_result kolo_wait_for(kolo_work* work, int64_t timeout_ms) {
  return counted(work, [&] { held(work).wait(limit_in(timeout_ms)); });
}

kolo_result kolo_wait_any(kolo_work* const* works, size_t count, int64_t timeout_ms,
                          size_t* index) {
  const kolo_work* first_work = nullptr;
  for (size_t i = 0; works != nullptr && i < count && first_work == nullptr; ++i)
    first_work = works[i];
  return counted(first_work, [&] {
    if (index == nullptr) refuse("`index` is null; the result is stored there");
    if (works == nullptr) refuse("the list of work handles is null");
    std::vector<Work> all(count);
    for (size_t i = 0; i < count; ++i) {
      if (works[i] != nullptr) all[i] = works[i]->work;
    }
    const auto first = wait_any(all, limit_in(timeout_ms));
    if (!first) {
      throw Error(ErrorCode::kDeadline, kNoPeer,
                  "kolo_wait_any: no operation ended in " + std::to_string(timeout_ms) + " ms");
    }
    *index = *first;
  });
}

kolo_result kolo_when_done(kolo_work* work, kolo_done_function callback, void* context) {
  return counted(work, [&] {
    if (callback == nullptr) refuse("the callback is null");
    held(work).when_done([callback, context](const Error* error) {
      const InCallback in_callback;
      if (error == nullptr) return callback(context, nullptr);
      const kolo_failure failure{result_of(error->code()), error->peer(), error->what()};
      callback(context, &failure);
    });
  });
}

kolo_result kolo_start(kolo_work* work) {
  return counted(work, [&] { held(work).start(); });
}

void kolo_work_free(kolo_work* work) { end(work); }
