// Call forms of a collective.
//
//   blocking     all_reduce(...)
//   async        all_reduce_async(...), then wait()
//   persistent   planned once; then start() and wait(), many times
//   event-loop   all_reduce_async(...), then poll() of the communicator's descriptor and
//   progress(),
//                until the operation is done
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
                                          CallForm::kPersistent, CallForm::kEventLoop};

// The servers of a push or a pull.
ServerPlan server_plan(const Problem& problem);

// One rank's input and output of a problem, as its collective takes them: whole, as the chunk of
// this rank, or as the chunk of this server. Nothing is computed that the call does not need.
struct CallBuffers {
  kolo::ConstBuffer in() const { return {input, problem.count, problem.type}; }
  kolo::Buffer out() const { return {output, problem.count, problem.type}; }
  kolo::ConstBuffer chunk_in() const { return {input, chunk(), problem.type}; }
  kolo::Buffer chunk_out() const { return {output, chunk(), problem.type}; }
  kolo::ConstBuffer server_in() const { return {input, served(), problem.type}; }
  kolo::Buffer server_out() const { return {output, served(), problem.type}; }

  std::size_t chunk() const;
  std::size_t served() const;

  const Problem& problem;
  const Communicator& communicator;
  const void* input;
  void* output;
};

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
