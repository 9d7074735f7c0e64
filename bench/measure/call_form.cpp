#include "bench/measure/call_form.h"

#include <utility>

namespace kolo::bench {
namespace {

// A persistent call returns an operation that is not started yet.
Work issue(Communicator& communicator, const Problem& problem, const void* in, void* out,
           const CallOptions& call) {
  const CallBuffers buffers{problem, communicator, in, out};
  switch (problem.collective) {
    case Collective::kAllReduce:
      return communicator.all_reduce_async(buffers.in(), buffers.out(), problem.op, call);
    case Collective::kReduceScatter:
      return communicator.reduce_scatter_async(buffers.in(), buffers.chunk_out(), problem.op, call);
    case Collective::kAllGather:
      return communicator.all_gather_async(buffers.chunk_in(), buffers.out(), call);
    case Collective::kBroadcast:
      return communicator.broadcast_async(buffers.out(), kRoot, call);
    case Collective::kBarrier:
      return communicator.barrier_async(call);
    case Collective::kPushPull:
      return communicator.push_pull_async(buffers.in(), buffers.out(), problem.op,
                                          server_plan(problem), {}, call);
    case Collective::kPush:
      return communicator.push_async(buffers.in(), buffers.server_out(), problem.op,
                                     server_plan(problem), {}, call);
    case Collective::kPull:
      return communicator.pull_async(buffers.server_in(), buffers.out(), server_plan(problem),
                                     call);
    case Collective::kReduce:
      return communicator.reduce_async(buffers.in(), buffers.out(), kRoot, problem.op, call);
    case Collective::kGather:
      return communicator.gather_async(buffers.chunk_in(), buffers.out(), kRoot, call);
    case Collective::kScatter:
      return communicator.scatter_async(buffers.in(), buffers.chunk_out(), kRoot, call);
    case Collective::kAllToAll:
      return communicator.all_to_all_async(buffers.in(), buffers.out(), call);
    case Collective::kScan:
      return communicator.scan_async(buffers.in(), buffers.out(), problem.op, call);
    case Collective::kExclusiveScan:
      return communicator.exclusive_scan_async(buffers.in(), buffers.out(), problem.op, call);
    case Collective::kMessage:
      break;  // measured by p2p
  }
  return {};
}

}  // namespace

std::string_view to_string(CallForm form) {
  switch (form) {
    case CallForm::kBlocking:
      return "blocking";
    case CallForm::kAsync:
      return "async";
    case CallForm::kPersistent:
      return "persistent";
    case CallForm::kEventLoop:
      return "event-loop";
    case CallForm::kCaptured:
      return "captured";
  }
  return "?";
}

std::size_t CallBuffers::chunk() const {
  return chunk_count(problem.count, communicator.size(), communicator.rank());
}

std::size_t CallBuffers::served() const {
  const int servers = problem.servers == 0 ? communicator.size() : problem.servers;
  const int rank = communicator.rank();
  return rank < servers ? chunk_count(problem.count, servers, rank) : 0;
}

ServerPlan server_plan(const Problem& problem) {
  ServerPlan result;
  result.everywhere = problem.servers == 0;
  for (int server = 0; server < problem.servers; ++server) result.servers.push_back(server);
  return result;
}

AsyncCaller::AsyncCaller(std::shared_ptr<Communicator> communicator, CallForm form,
                         const CallOptions& call)
    : communicator_(std::move(communicator)), call_(call) {
  call_.is_persistent = form == CallForm::kPersistent;
}

Work AsyncCaller::begin(const Problem& problem, const void* in, void* out) {
  if (!call_.is_persistent) return issue(*communicator_, problem, in, out, call_);
  if (!planned_.is_valid() || problem != problem_ || in != in_ || out != out_) {
    planned_ = issue(*communicator_, problem, in, out, call_);
    problem_ = problem;
    in_ = in;
    out_ = out;
  }
  planned_.start();
  return planned_;
}

}  // namespace kolo::bench
