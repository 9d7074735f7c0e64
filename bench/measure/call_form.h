// Call forms of a collective.
//
//   blocking     all_reduce(...)
//   async        all_reduce_async(...), then wait()
//   persistent   planned once; then start() and wait(), many times
//   captured     enqueued once on a stream that is captured into a graph, which is launched many
//                times (device/captured_graph.h)
#pragma once

#include <memory>
#include <string_view>

#include "bench/measure/library.h"
#include "collectives/communicator.h"

namespace kolo::bench {

std::string_view to_string(CallForm form);

// The values of --form.
inline constexpr CallForm kCallForms[] = {CallForm::kBlocking, CallForm::kAsync,
                                          CallForm::kPersistent};

// The servers of a push or a pull.
ServerPlan server_plan(const Problem& problem);

// Issues operations without waiting. A persistent operation is planned again when the problem or
// the buffers change. Threading: as the communicator; one thread at a time.
class AsyncCaller {
 public:
  // `form`: all but kPersistent count as kAsync.
  AsyncCaller(std::shared_ptr<Communicator> communicator, CallForm form, const CallOptions& call);

  // The operation is in flight when it returns.
  Work begin(const Problem& problem, const void* in, void* out);

 private:
  std::shared_ptr<Communicator> communicator_;
  CallOptions call_;
  Problem problem_;  // the problem and the buffers of planned_
  const void* in_ = nullptr;
  void* out_ = nullptr;
  Work planned_;
};

}  // namespace kolo::bench
