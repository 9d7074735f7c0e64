// The forms in which a program can call a collective.
//
//   blocking     all_reduce(...)
//   async        all_reduce_async(...), then wait()
//   persistent   planned once; then start() and wait(), again and again
//   captured     given once to a stream that is captured into a graph, which is launched again and
//                again (device/captured.h)
#pragma once

#include <memory>
#include <string_view>

#include "bench/measure/library.h"
#include "collectives/communicator.h"

namespace kolo::bench {

std::string_view to_string(CallForm form);

// Which --form can ask for.
inline constexpr CallForm kCallForms[] = {CallForm::kBlocking, CallForm::kAsync,
                                          CallForm::kPersistent};

// Who serves in a push or a pull.
ServerPlan server_plan(const Problem& problem);

// One who calls without waiting. A persistent operation is planned when problem or buffers are new.
// Threading: as the communicator's; one thread at a time.
class AsyncCaller {
 public:
  // `form`: all but kPersistent count as kAsync.
  AsyncCaller(std::shared_ptr<Communicator> communicator, CallForm form, const CallOptions& call);

  // The operation is in flight when it returns.
  Work begin(const Problem& problem, const void* in, void* out);

 private:
  std::shared_ptr<Communicator> communicator_;
  CallOptions call_;
  Problem problem_;  // of planned_, and its buffers
  const void* in_ = nullptr;
  void* out_ = nullptr;
  Work planned_;
};

}  // namespace kolo::bench
