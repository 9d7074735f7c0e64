#include "collectives/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "collectives/algorithm_table.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/engine.h"
#include "collectives/operation.h"
#include "transports/check.h"

namespace kolo {

struct Communicator::State : Engine {
  using Engine::Engine;
};

namespace {

// A caller's buffer: `count` elements of the call's type at `data`.
struct Buffer {
  std::string_view name;
  const void* data = nullptr;
  std::size_t count = 0;
};

[[noreturn]] void reject(const Call& call, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", to_string(call.collective), what));
}

void require_count(const Call& call, std::size_t count) {
  const std::size_t most = std::min(kLongestCount, PTRDIFF_MAX / element_bytes(call.type));
  if (count > most) {
    reject(call, fmt::format("{} elements of {} are more than memory can hold; the most is {}",
                             count, to_string(call.type), most));
  }
}

void require_memory(const Call& call, const Buffer& buffer) {
  if (buffer.data == nullptr && buffer.count > 0) {
    reject(call, fmt::format("'{}' is null, but should hold {} {}", buffer.name, buffer.count,
                             to_string(call.type)));
  }
}

// `in` and `out` may meet only where in element `in_begin` (or out element `out_begin`) is the
// other's beginning.
void require_apart(const Call& call, const Buffer& in, const Buffer& out, std::size_t in_begin,
                   std::size_t out_begin) {
  const std::size_t width = element_bytes(call.type);
  const auto* ins = static_cast<const std::byte*>(in.data);
  const auto* outs = static_cast<const std::byte*>(out.data);
  if (ins == nullptr || outs == nullptr || in.count == 0 || out.count == 0) return;
  if (ins + in_begin * width == outs + out_begin * width) return;
  const std::less_equal<> is_not_after;
  if (is_not_after(ins + in.count * width, outs) || is_not_after(outs + out.count * width, ins)) {
    return;
  }
  reject(call, fmt::format("'{}' and '{}' overlap without being in place; give the same memory or "
                           "memory apart",
                           in.name, out.name));
}

Call begin(Collective collective, std::size_t count, ElementType type, const CallOptions& options) {
  Call call;
  call.collective = collective;
  call.algorithm = find_algorithm(collective, options.algorithm);
  call.type = type;
  call.count = count;
  call.segment_bytes = options.segment_bytes;
  require_count(call, count);
  return call;
}

Call all_reduce_call(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                     const CallOptions& options) {
  Call call = begin(Collective::kAllReduce, count, type, options);
  call.op = op;
  call.in = in;
  call.out = out;
  require_memory(call, {"in", in, count});
  require_memory(call, {"out", out, count});
  require_apart(call, {"in", in, count}, {"out", out, count}, 0, 0);
  return call;
}

Call reduce_scatter_call(int rank, int size, const void* in, void* out, std::size_t count,
                         ElementType type, ReduceOp op, const CallOptions& options) {
  Call call = begin(Collective::kReduceScatter, count, type, options);
  call.op = op;
  call.in = in;
  call.out = out;
  const std::size_t mine = chunk_count(count, size, rank);
  require_memory(call, {"in", in, count});
  require_memory(call, {"out", out, mine});
  require_apart(call, {"in", in, count}, {"out", out, mine}, chunk_begin(count, size, rank), 0);
  return call;
}

Call all_gather_call(int rank, int size, const void* in, void* out, std::size_t count,
                     ElementType type, const CallOptions& options) {
  Call call = begin(Collective::kAllGather, count, type, options);
  call.in = in;
  call.out = out;
  const std::size_t mine = chunk_count(count, size, rank);
  require_memory(call, {"in", in, mine});
  require_memory(call, {"out", out, count});
  require_apart(call, {"in", in, mine}, {"out", out, count}, 0, chunk_begin(count, size, rank));
  return call;
}

Call broadcast_call(int size, void* data, std::size_t count, ElementType type, int root,
                    const CallOptions& options) {
  Call call = begin(Collective::kBroadcast, count, type, options);
  if (root < 0 || root >= size) {
    reject(call, fmt::format("root {} is not a rank; there are 0 to {}", root, size - 1));
  }
  call.root = root;
  call.in = data;
  call.out = data;
  require_memory(call, {"data", data, count});
  return call;
}

Call barrier_call(const CallOptions& options) {
  return begin(Collective::kBarrier, kBarrierCount, ElementType::kInt32, options);
}

Call push_pull_call(int rank, const void* in, void* out, std::size_t count, ElementType type,
                    ReduceOp op, const ServerPlan& plan, const CallOptions& options) {
  Call call = begin(Collective::kPushPull, count, type, options);
  if (plan.everywhere && !plan.servers.empty()) {
    reject(call, "the plan names servers, and also says that every rank is one; choose");
  }
  call.op = op;
  call.in = in;
  call.out = out;
  call.servers = &plan;
  const bool serves =
      std::find(plan.servers.begin(), plan.servers.end(), rank) != plan.servers.end();
  if (serves && (in != nullptr || out != nullptr)) {
    reject(call, "a dedicated server gives and gets no data: pass null for 'in' and 'out'");
  }
  if (!serves) {
    require_memory(call, {"in", in, count});
    require_memory(call, {"out", out, count});
    require_apart(call, {"in", in, count}, {"out", out, count}, 0, 0);
  }
  return call;
}

void run(Engine& engine, const Call& call, Update update = {}) {
  Operation operation;
  operation.update = std::move(update);
  engine.run(call, operation);
}

Work issue(const std::shared_ptr<Engine>& engine, const Call& call, Update update = {}) {
  auto operation = std::make_shared<Operation>();
  operation->update = std::move(update);
  operation->engine = engine;
  engine->issue(call, operation);
  return Work(std::move(operation));
}

}  // namespace

Communicator::Communicator(int rank, int size, std::shared_ptr<Store> store,
                           CommunicatorOptions options)
    : state_(std::make_shared<State>(rank, size, std::move(store), options)) {}

Communicator Communicator::from_environment(CommunicatorOptions options) {
  const LaunchEnvironment who = launch_environment();
  auto store = store_from_environment(who, Clock::now() + options.timeout);
  return {who.rank, who.size, std::move(store), std::move(options)};
}

Communicator::Communicator(Communicator&&) noexcept = default;

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  if (state_) state_->close();
  state_ = std::move(other.state_);
  return *this;
}

Communicator::~Communicator() {
  if (state_) state_->close();
}

int Communicator::rank() const { return state_->rank(); }
int Communicator::size() const { return state_->size(); }
std::string_view Communicator::transport() const { return state_->transport().name(); }
std::string_view Communicator::algorithm(Collective collective) const {
  return algorithm_name(find_algorithm(collective, {}));
}

void Communicator::all_reduce(const void* in, void* out, std::size_t count, ElementType type,
                              ReduceOp op, const CallOptions& call) {
  run(*state_, all_reduce_call(in, out, count, type, op, call));
}

Work Communicator::all_reduce_async(const void* in, void* out, std::size_t count, ElementType type,
                                    ReduceOp op, const CallOptions& call) {
  return issue(state_, all_reduce_call(in, out, count, type, op, call));
}

void Communicator::reduce_scatter(const void* in, void* out, std::size_t count, ElementType type,
                                  ReduceOp op, const CallOptions& call) {
  run(*state_, reduce_scatter_call(rank(), size(), in, out, count, type, op, call));
}

Work Communicator::reduce_scatter_async(const void* in, void* out, std::size_t count,
                                        ElementType type, ReduceOp op, const CallOptions& call) {
  return issue(state_, reduce_scatter_call(rank(), size(), in, out, count, type, op, call));
}

void Communicator::all_gather(const void* in, void* out, std::size_t count, ElementType type,
                              const CallOptions& call) {
  run(*state_, all_gather_call(rank(), size(), in, out, count, type, call));
}

Work Communicator::all_gather_async(const void* in, void* out, std::size_t count, ElementType type,
                                    const CallOptions& call) {
  return issue(state_, all_gather_call(rank(), size(), in, out, count, type, call));
}

void Communicator::broadcast(void* data, std::size_t count, ElementType type, int root,
                             const CallOptions& call) {
  run(*state_, broadcast_call(size(), data, count, type, root, call));
}

Work Communicator::broadcast_async(void* data, std::size_t count, ElementType type, int root,
                                   const CallOptions& call) {
  return issue(state_, broadcast_call(size(), data, count, type, root, call));
}

void Communicator::barrier(const CallOptions& call) { run(*state_, barrier_call(call)); }

Work Communicator::barrier_async(const CallOptions& call) {
  return issue(state_, barrier_call(call));
}

void Communicator::push_pull(const void* in, void* out, std::size_t count, ElementType type,
                             ReduceOp op, const ServerPlan& plan, ServerUpdate update,
                             const CallOptions& call) {
  run(*state_, push_pull_call(rank(), in, out, count, type, op, plan, call), std::move(update));
}

Work Communicator::push_pull_async(const void* in, void* out, std::size_t count, ElementType type,
                                   ReduceOp op, const ServerPlan& plan, ServerUpdate update,
                                   const CallOptions& call) {
  return issue(state_, push_pull_call(rank(), in, out, count, type, op, plan, call),
               std::move(update));
}

bool Communicator::progress() { return state_->progress(); }

void Communicator::abort(std::string_view reason) { state_->abort(reason); }

CommunicatorStatistics Communicator::statistics() const { return state_->statistics(); }

}  // namespace kolo
