// kolo itself, as one of the libraries under test.
#include "bench/library.h"
#include "collectives/communicator.h"

namespace kolo::bench {
namespace {

class Kolo : public Library {
 public:
  explicit Kolo(const LibraryRequest& request)
      : algorithm_(request.algorithm),
        communicator_(request.rank, request.size, request.store, options(request)) {
    call_.algorithm = algorithm_;
  }

  std::string name() const override { return "kolo"; }
  std::string transport() const override { return std::string(communicator_.transport()); }
  std::string algorithm(Collective collective) const override {
    return algorithm_.empty() ? std::string(communicator_.algorithm(collective)) : algorithm_;
  }
  std::string objection(const Problem&) const override { return {}; }

  void run(const Problem& problem, const void* in, void* out) override {
    const std::size_t count = problem.count;
    switch (problem.collective) {
      case Collective::kAllReduce:
        return communicator_.all_reduce(in, out, count, problem.type, problem.op, call_);
      case Collective::kReduceScatter:
        return communicator_.reduce_scatter(in, out, count, problem.type, problem.op, call_);
      case Collective::kAllGather:
        return communicator_.all_gather(in, out, count, problem.type, call_);
      case Collective::kBroadcast:
        return communicator_.broadcast(out, count, problem.type, 0, call_);
      case Collective::kBarrier:
        return communicator_.barrier(call_);
      case Collective::kPushPull:
        return communicator_.push_pull(in, out, count, problem.type, problem.op, plan(problem), {},
                                       call_);
    }
  }

 private:
  static CommunicatorOptions options(const LibraryRequest& request) {
    CommunicatorOptions result;
    result.transport = request.transport;
    result.name = "bench";
    result.timeout = request.timeout;
    result.segment_bytes = request.segment_bytes;
    return result;
  }

  static ServerPlan plan(const Problem& problem) {
    ServerPlan result;
    result.everywhere = problem.servers == 0;
    for (int server = 0; server < problem.servers; ++server) result.servers.push_back(server);
    return result;
  }

  std::string algorithm_;
  Communicator communicator_;
  CallOptions call_;
};

}  // namespace

std::unique_ptr<Library> make_kolo(const LibraryRequest& request) {
  return std::make_unique<Kolo>(request);
}

}  // namespace kolo::bench
