#include "bench/measure/call_form.h"

#include <utility>

namespace kolo::bench {
namespace {

// A persistent call returns an operation that is not started yet.
Work issue(Communicator& communicator, const Problem& problem, const void* in, void* out,
           const CallOptions& call) {
  const std::size_t count = problem.count;
  const ElementType type = problem.type;
  switch (problem.collective) {
    case Collective::kAllReduce:
      return communicator.all_reduce_async(in, out, count, type, problem.op, call);
    case Collective::kReduceScatter:
      return communicator.reduce_scatter_async(in, out, count, type, problem.op, call);
    case Collective::kAllGather:
      return communicator.all_gather_async(in, out, count, type, call);
    case Collective::kBroadcast:
      return communicator.broadcast_async(out, count, type, kRoot, call);
    case Collective::kBarrier:
      return communicator.barrier_async(call);
    case Collective::kPushPull:
      return communicator.push_pull_async(in, out, count, type, problem.op, server_plan(problem),
                                          {}, call);
    case Collective::kPush:
      return communicator.push_async(in, out, count, type, problem.op, server_plan(problem), {},
                                     call);
    case Collective::kPull:
      return communicator.pull_async(in, out, count, type, server_plan(problem), call);
    case Collective::kReduce:
      return communicator.reduce_async(in, out, count, type, problem.op, kRoot, call);
    case Collective::kGather:
      return communicator.gather_async(in, out, count, type, kRoot, call);
    case Collective::kScatter:
      return communicator.scatter_async(in, out, count, type, kRoot, call);
    case Collective::kAllToAll:
      return communicator.all_to_all_async(in, out, count, type, call);
    case Collective::kScan:
      return communicator.scan_async(in, out, count, type, problem.op, call);
    case Collective::kExclusiveScan:
      return communicator.exclusive_scan_async(in, out, count, type, problem.op, call);
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
    case CallForm::kCaptured:
      return "captured";
  }
  return "?";
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
