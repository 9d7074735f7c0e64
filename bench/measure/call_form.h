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

std::string_view to_string(Form form);

// Which --form can ask for.
inline constexpr Form kForms[] = {Form::kBlocking, Form::kAsync, Form::kPersistent};

// Who serves in a push or a pull.
ServerPlan server_plan(const Problem& problem);

// One who calls without waiting. A persistent operation is planned when problem or buffers are new.
// Threading: as the communicator's; one thread at a time.
class Caller {
 public:
  // `form`: all but kPersistent count as kAsync.
  Caller(std::shared_ptr<Communicator> communicator, Form form, const CallOptions& call);

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
