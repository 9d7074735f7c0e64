#include "bench/device/captured_graph.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/device/memory.h"
#include "bench/measure/call_form.h"
#include "transports/rendezvous.h"

namespace kolo::bench {
namespace {

class Captured final : public Library {
 public:
  explicit Captured(const LibraryRequest& request)
      : algorithm_(request.algorithm),
        memory_(request.device),
        communicator_(connect_kolo(request)),
        caller_(communicator_, CallForm::kAsync, on_stream()) {}

  std::string name() const override { return "kolo"; }
  std::string transport() const override { return std::string(communicator_->transport()); }
  std::string carrier() const override { return communicator_->carrier(); }
  std::string algorithm(const Problem& problem) const override {
    if (!algorithm_.empty()) return algorithm_;
    const std::size_t bytes = problem.count * element_bytes(problem.type);
    return std::string(
        communicator_->algorithm(problem.collective, bytes, problem.type, problem.op));
  }
  std::string caution() const override {
    return "captured is the same call in a CUDA graph, launched again and again; its first time "
           "includes the capture";
  }
  bool enqueues() const override { return true; }

  // A capture is refused before anything is sent, on all ranks.
  std::string objection(const Problem&) const override {
    if (!objection_) objection_ = try_capture();
    return *objection_;
  }

  void run(const Problem& problem, const void* in, void* out) override {
    if (graph_ == nullptr || problem != problem_ || in != in_ || out != out_)
      capture(problem, in, out);
    graph_->launch();
  }

 private:
  CallOptions on_stream() const {
    CallOptions call;
    call.algorithm = algorithm_;
    call.stream = DeviceStream{memory_->stream()};
    return call;
  }

  std::string try_capture() const {
    CallOptions call;
    call.stream = DeviceStream{memory_->stream()};
    try {
      memory_->capture([&] { communicator_->barrier_async(call).wait(); });
    } catch (const std::invalid_argument& refusal) {
      return refusal.what();
    }
    return {};
  }

  // The wait ends after all ranks have captured it. After that, no host takes part in a launch.
  void capture(const Problem& problem, const void* in, void* out) {
    graph_ = nullptr;
    graph_ = memory_->capture([&] { caller_.begin(problem, in, out).wait(); });
    problem_ = problem;
    in_ = in;
    out_ = out;
  }

  std::string algorithm_;
  std::shared_ptr<DeviceMemory> memory_;
  std::shared_ptr<Communicator> communicator_;
  AsyncCaller caller_;
  mutable std::optional<std::string> objection_;
  std::shared_ptr<DeviceGraph> graph_;
  Problem problem_;  // the problem and the buffers of graph_
  const void* in_ = nullptr;
  void* out_ = nullptr;
};

}  // namespace

std::unique_ptr<Library> make_captured(const LibraryRequest& request) {
  LibraryRequest own = request;
  own.store = prefixed(request.store, "captured/");
  own.is_profiled = false;
  return std::make_unique<Captured>(own);
}

}  // namespace kolo::bench
