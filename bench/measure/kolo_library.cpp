// kolo as one of the measured libraries.
#include <poll.h>
#include <utility>

#include "bench/device/memory.h"
#include "bench/measure/call_form.h"
#include "bench/measure/library.h"
#include "collectives/communicator.h"

namespace kolo::bench {
namespace {

class Kolo : public Library {
 public:
  Kolo(std::shared_ptr<Communicator> communicator, std::string algorithm,
       const LibraryRequest& request)
      : algorithm_(std::move(algorithm)),
        communicator_(std::move(communicator)),
        form_(request.form),
        call_(by(algorithm_, request.device.get())),
        caller_(communicator_, form_, call_) {}

  std::string name() const override { return "kolo"; }
  std::string transport() const override { return std::string(communicator_->transport()); }
  std::string carrier() const override { return communicator_->carrier(); }
  std::string algorithm(const Problem& problem) const override {
    if (!algorithm_.empty()) return algorithm_;
    const std::size_t bytes = problem.count * element_bytes(problem.type);
    return std::string(
        communicator_->algorithm(problem.collective, bytes, problem.type, problem.op));
  }
  std::string objection(const Problem&) const override { return {}; }
  bool enqueues() const override { return call_.stream.has_value(); }
  const Communicator* communicator() const override { return communicator_.get(); }
  void write_records() override { communicator_->write_records(); }
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    return communicator_->allocate(bytes);
  }

  // On a stream the asynchronous operation is only enqueued. The caller waits for the stream, not
  // for the operation.
  void run(const Problem& problem, const void* in, void* out) override {
    if (form_ == CallForm::kBlocking) return run_blocking(problem, in, out);
    if (given_.is_valid()) given_.wait();
    if (form_ == CallForm::kEventLoop) communicator_->descriptor();
    given_ = caller_.begin(problem, in, out);
    if (form_ == CallForm::kEventLoop) poll_until_idle();
    if (!enqueues()) std::exchange(given_, {}).wait();
  }

 private:
  static CallOptions by(const std::string& algorithm, const DeviceMemory* device) {
    CallOptions call;
    call.algorithm = algorithm;
    if (device != nullptr) call.stream = DeviceStream{device->stream()};
    return call;
  }

  void poll_until_idle() {
    pollfd watched{communicator_->descriptor(), POLLIN, 0};
    while (communicator_->progress()) ::poll(&watched, 1, -1);
  }

  void run_blocking(const Problem& problem, const void* in, void* out) {
    const CallBuffers buffers{problem, *communicator_, in, out};
    switch (problem.collective) {
      case Collective::kAllReduce:
        return communicator_->all_reduce(buffers.in(), buffers.out(), problem.op, call_);
      case Collective::kReduceScatter:
        return communicator_->reduce_scatter(buffers.in(), buffers.chunk_out(), problem.op, call_);
      case Collective::kAllGather:
        return communicator_->all_gather(buffers.chunk_in(), buffers.out(), call_);
      case Collective::kBroadcast:
        return communicator_->broadcast(buffers.out(), kRoot, call_);
      case Collective::kBarrier:
        return communicator_->barrier(call_);
      case Collective::kPushPull:
        return communicator_->push_pull(buffers.in(), buffers.out(), problem.op,
                                        server_plan(problem), {}, call_);
      case Collective::kPush:
        return communicator_->push(buffers.in(), buffers.server_out(), problem.op,
                                   server_plan(problem), {}, call_);
      case Collective::kPull:
        return communicator_->pull(buffers.server_in(), buffers.out(), server_plan(problem), call_);
      case Collective::kReduce:
        return communicator_->reduce(buffers.in(), buffers.out(), kRoot, problem.op, call_);
      case Collective::kGather:
        return communicator_->gather(buffers.chunk_in(), buffers.out(), kRoot, call_);
      case Collective::kScatter:
        return communicator_->scatter(buffers.in(), buffers.chunk_out(), kRoot, call_);
      case Collective::kAllToAll:
        return communicator_->all_to_all(buffers.in(), buffers.out(), call_);
      case Collective::kScan:
        return communicator_->scan(buffers.in(), buffers.out(), problem.op, call_);
      case Collective::kExclusiveScan:
        return communicator_->exclusive_scan(buffers.in(), buffers.out(), problem.op, call_);
      case Collective::kMessage:
        return;  // measured by p2p
    }
  }

  std::string algorithm_;
  std::shared_ptr<Communicator> communicator_;
  CallForm form_;
  CallOptions call_;
  AsyncCaller caller_;
  Work given_;  // the operation that was enqueued last
};

}  // namespace

std::shared_ptr<Communicator> connect_kolo(const LibraryRequest& request) {
  CommunicatorOptions options;
  options.transport = request.transport;
  options.name = "bench";
  options.timeout = request.timeout;
  options.segment_bytes = request.segment_bytes;
  options.reproducibility = request.reproducibility;
  options.progress_thread = request.has_progress_thread;
  options.profile = request.is_profiled;
  if (request.device != nullptr) options.device = request.device->rank_device();
  return std::make_shared<Communicator>(request.rank, request.size, request.store, options);
}

std::unique_ptr<Library> make_kolo(const LibraryRequest& request) {
  return std::make_unique<Kolo>(connect_kolo(request), request.algorithm, request);
}

std::vector<std::unique_ptr<Library>> make_kolo_by_all(std::shared_ptr<Communicator> communicator,
                                                       const Problem& problem,
                                                       const LibraryRequest& request) {
  std::vector<std::unique_ptr<Library>> libraries;
  for (const Prediction& candidate :
       communicator->predict(problem.collective, 0, problem.type, problem.op)) {
    libraries.push_back(
        std::make_unique<Kolo>(communicator, std::string(candidate.algorithm), request));
  }
  return libraries;
}

}  // namespace kolo::bench
