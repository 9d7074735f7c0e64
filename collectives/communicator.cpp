#include "collectives/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "collectives/algorithms/dissemination.h"
#include "collectives/engine/checked_call.h"
#include "collectives/engine/communicator_state.h"
#include "collectives/engine/submission.h"
#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo {

namespace {

using submission::issue;
using submission::issued_from_cache;
using submission::ran_from_cache;
using submission::run;

checked_calls::Elements by(const UserReduceOp& reducer, const CallOptions& call) {
  return {ElementType::kUint8, call, &reducer};
}

}  // namespace

Communicator::Communicator(int rank, int size, std::shared_ptr<Store> store,
                           CommunicatorOptions options)
    : state_(std::make_shared<State>(rank, size, std::move(store), options)) {}

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}

Communicator Communicator::from_environment(CommunicatorOptions options) {
  options = validated_options(std::move(options));
  const LaunchEnvironment who = launch_environment();
  auto store = store_from_environment(who, Clock::now() + options.timeout);
  return {who.rank, who.size, std::move(store), std::move(options)};
}

Communicator::Communicator(Communicator&&) noexcept = default;

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  end();
  state_ = std::move(other.state_);
  return *this;
}

Communicator::~Communicator() { end(); }

void Communicator::end() noexcept {
  if (!state_) return;
  if (state_->is_in_creating_process()) return Engine::close(std::exchange(state_, nullptr));
  State::leak_in_child(std::exchange(state_, nullptr));
}

const std::shared_ptr<Communicator::State>& Communicator::held() const {
  check(state_ != nullptr, "this communicator was moved from; call the one that it was moved to");
  check(state_->is_in_creating_process(),
        "this communicator was made before fork() and belongs to the parent process; make a new "
        "one in the child");
  return state_;
}

Communicator::State& Communicator::state() const { return *held(); }

void Communicator::all_reduce(const void* in, void* out, std::size_t count, ElementType type,
                              ReduceOp op, const CallOptions& call) {
  const CallKey key{Collective::kAllReduce, type, op, 0, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::all_reduce(in, out, count, {type, call}, op));
}

Work Communicator::all_reduce_async(const void* in, void* out, std::size_t count, ElementType type,
                                    ReduceOp op, const CallOptions& call) {
  const CallKey key{Collective::kAllReduce, type, op, 0, count};
  if (auto work = issued_from_cache(held(), key, in, out, call)) return *std::move(work);
  return issue(held(), checked_calls::all_reduce(in, out, count, {type, call}, op));
}

void Communicator::reduce_scatter(const void* in, void* out, std::size_t count, ElementType type,
                                  ReduceOp op, const CallOptions& call) {
  const CallKey key{Collective::kReduceScatter, type, op, 0, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::reduce_scatter(state().caller(), in, out, count, {type, call}, op));
}

Work Communicator::reduce_scatter_async(const void* in, void* out, std::size_t count,
                                        ElementType type, ReduceOp op, const CallOptions& call) {
  return issue(held(),
               checked_calls::reduce_scatter(state().caller(), in, out, count, {type, call}, op));
}

void Communicator::all_gather(const void* in, void* out, std::size_t count, ElementType type,
                              const CallOptions& call) {
  const CallKey key{Collective::kAllGather, type, ReduceOp::kSum, 0, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::all_gather(state().caller(), in, out, count, {type, call}));
}

Work Communicator::all_gather_async(const void* in, void* out, std::size_t count, ElementType type,
                                    const CallOptions& call) {
  return issue(held(), checked_calls::all_gather(state().caller(), in, out, count, {type, call}));
}

void Communicator::broadcast(void* data, std::size_t count, ElementType type, int root,
                             const CallOptions& call) {
  const CallKey key{Collective::kBroadcast, type, ReduceOp::kSum, root, count};
  if (ran_from_cache(state(), key, data, data, call)) return;
  run(state(), checked_calls::broadcast(state().caller(), data, count, {type, call}, root));
}

Work Communicator::broadcast_async(void* data, std::size_t count, ElementType type, int root,
                                   const CallOptions& call) {
  return issue(held(), checked_calls::broadcast(state().caller(), data, count, {type, call}, root));
}

void Communicator::reduce(const void* in, void* out, std::size_t count, ElementType type,
                          ReduceOp op, int root, const CallOptions& call) {
  const CallKey key{Collective::kReduce, type, op, root, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::reduce(state().caller(), in, out, count, {type, call}, op, root));
}

Work Communicator::reduce_async(const void* in, void* out, std::size_t count, ElementType type,
                                ReduceOp op, int root, const CallOptions& call) {
  return issue(held(),
               checked_calls::reduce(state().caller(), in, out, count, {type, call}, op, root));
}

void Communicator::gather(const void* in, void* out, std::size_t count, ElementType type, int root,
                          const CallOptions& call) {
  const CallKey key{Collective::kGather, type, ReduceOp::kSum, root, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::gather(state().caller(), in, out, count, {type, call}, root));
}

Work Communicator::gather_async(const void* in, void* out, std::size_t count, ElementType type,
                                int root, const CallOptions& call) {
  return issue(held(), checked_calls::gather(state().caller(), in, out, count, {type, call}, root));
}

void Communicator::scatter(const void* in, void* out, std::size_t count, ElementType type, int root,
                           const CallOptions& call) {
  const CallKey key{Collective::kScatter, type, ReduceOp::kSum, root, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::scatter(state().caller(), in, out, count, {type, call}, root));
}

Work Communicator::scatter_async(const void* in, void* out, std::size_t count, ElementType type,
                                 int root, const CallOptions& call) {
  return issue(held(),
               checked_calls::scatter(state().caller(), in, out, count, {type, call}, root));
}

void Communicator::all_to_all(const void* in, void* out, std::size_t count, ElementType type,
                              const CallOptions& call) {
  const CallKey key{Collective::kAllToAll, type, ReduceOp::kSum, 0, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::all_to_all(state().caller(), in, out, count, {type, call}));
}

Work Communicator::all_to_all_async(const void* in, void* out, std::size_t count, ElementType type,
                                    const CallOptions& call) {
  return issue(held(), checked_calls::all_to_all(state().caller(), in, out, count, {type, call}));
}

void Communicator::scan(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                        const CallOptions& call) {
  const CallKey key{Collective::kScan, type, op, 0, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(),
      checked_calls::scan(Collective::kScan, state().caller(), in, out, count, {type, call}, op));
}

Work Communicator::scan_async(const void* in, void* out, std::size_t count, ElementType type,
                              ReduceOp op, const CallOptions& call) {
  return issue(held(), checked_calls::scan(Collective::kScan, state().caller(), in, out, count,
                                           {type, call}, op));
}

void Communicator::exclusive_scan(const void* in, void* out, std::size_t count, ElementType type,
                                  ReduceOp op, const CallOptions& call) {
  const CallKey key{Collective::kExclusiveScan, type, op, 0, count};
  if (ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::scan(Collective::kExclusiveScan, state().caller(), in, out, count,
                                   {type, call}, op));
}

Work Communicator::exclusive_scan_async(const void* in, void* out, std::size_t count,
                                        ElementType type, ReduceOp op, const CallOptions& call) {
  return issue(held(), checked_calls::scan(Collective::kExclusiveScan, state().caller(), in, out,
                                           count, {type, call}, op));
}

void Communicator::barrier(const CallOptions& call) {
  const CallKey key{Collective::kBarrier, ElementType::kInt32, ReduceOp::kSum, 0, kBarrierCount};
  if (ran_from_cache(state(), key, nullptr, nullptr, call)) return;
  run(state(), checked_calls::barrier(call));
}

Work Communicator::barrier_async(const CallOptions& call) {
  return issue(held(), checked_calls::barrier(call));
}

void Communicator::reduce_scatter_v(const void* in, void* out, Counts counts, ElementType type,
                                    ReduceOp op, const CallOptions& call) {
  run(state(),
      checked_calls::reduce_scatter_v(state().caller(), in, out, counts, {type, call}, op));
}

Work Communicator::reduce_scatter_v_async(const void* in, void* out, Counts counts,
                                          ElementType type, ReduceOp op, const CallOptions& call) {
  return issue(
      held(), checked_calls::reduce_scatter_v(state().caller(), in, out, counts, {type, call}, op));
}

void Communicator::all_gather_v(const void* in, void* out, Counts counts, ElementType type,
                                const CallOptions& call) {
  run(state(), checked_calls::all_gather_v(state().caller(), in, out, counts, {type, call}));
}

Work Communicator::all_gather_v_async(const void* in, void* out, Counts counts, ElementType type,
                                      const CallOptions& call) {
  return issue(held(),
               checked_calls::all_gather_v(state().caller(), in, out, counts, {type, call}));
}

void Communicator::gather_v(const void* in, std::size_t count, void* out, Counts counts,
                            ElementType type, int root, const CallOptions& call) {
  run(state(),
      checked_calls::gather_v(state().caller(), in, count, out, counts, {type, call}, root));
}

Work Communicator::gather_v_async(const void* in, std::size_t count, void* out, Counts counts,
                                  ElementType type, int root, const CallOptions& call) {
  return issue(held(), checked_calls::gather_v(state().caller(), in, count, out, counts,
                                               {type, call}, root));
}

void Communicator::scatter_v(const void* in, Counts counts, void* out, std::size_t count,
                             ElementType type, int root, const CallOptions& call) {
  run(state(),
      checked_calls::scatter_v(state().caller(), in, counts, out, count, {type, call}, root));
}

Work Communicator::scatter_v_async(const void* in, Counts counts, void* out, std::size_t count,
                                   ElementType type, int root, const CallOptions& call) {
  return issue(held(), checked_calls::scatter_v(state().caller(), in, counts, out, count,
                                                {type, call}, root));
}

void Communicator::all_to_all_v(const void* in, Counts gives, void* out, Counts gets,
                                ElementType type, const CallOptions& call) {
  run(state(), checked_calls::all_to_all_v(state().caller(), in, gives, out, gets, {type, call}));
}

Work Communicator::all_to_all_v_async(const void* in, Counts gives, void* out, Counts gets,
                                      ElementType type, const CallOptions& call) {
  return issue(held(),
               checked_calls::all_to_all_v(state().caller(), in, gives, out, gets, {type, call}));
}

void Communicator::send(const void* data, std::size_t count, ElementType type, int to,
                        const CallOptions& call) {
  const CallKey key = CallKey::of_message(type, to, false, count);
  if (ran_from_cache(state(), key, data, nullptr, call)) return;
  run(state(),
      checked_calls::message(state().caller(), data, nullptr, count, {type, call}, rank(), to));
}

Work Communicator::send_async(const void* data, std::size_t count, ElementType type, int to,
                              const CallOptions& call) {
  const CallKey key = CallKey::of_message(type, to, false, count);
  if (auto work = issued_from_cache(held(), key, data, nullptr, call)) return *std::move(work);
  return issue(held(), checked_calls::message(state().caller(), data, nullptr, count, {type, call},
                                              rank(), to));
}

void Communicator::receive(void* data, std::size_t count, ElementType type, int from,
                           const CallOptions& call) {
  const CallKey key = CallKey::of_message(type, from, true, count);
  if (ran_from_cache(state(), key, nullptr, data, call)) return;
  run(state(),
      checked_calls::message(state().caller(), nullptr, data, count, {type, call}, from, rank()));
}

Work Communicator::receive_async(void* data, std::size_t count, ElementType type, int from,
                                 const CallOptions& call) {
  const CallKey key = CallKey::of_message(type, from, true, count);
  if (auto work = issued_from_cache(held(), key, nullptr, data, call)) return *std::move(work);
  return issue(held(), checked_calls::message(state().caller(), nullptr, data, count, {type, call},
                                              from, rank()));
}

void Communicator::send_receive(const void* send_data, std::size_t send_count, int to,
                                void* receive_data, std::size_t receive_count, int from,
                                ElementType type, const CallOptions& call) {
  const checked_calls::Exchange both =
      checked_calls::exchange(state().caller(), {send_data, send_count, to},
                              {receive_data, receive_count, from}, {type, call});
  if (call.stream) return state().exchange_on_stream(both);
  if (both.is_copy) {
    state().require_alive();
    std::copy_n(static_cast<const std::byte*>(both.send.in), send_count * both.send.element_bytes,
                static_cast<std::byte*>(both.send.out));
    return;
  }
  Work receive = issue(held(), both.receive);
  run(state(), both.send);
  receive.wait();
}

void Communicator::push_pull(const void* in, void* out, std::size_t count, ElementType type,
                             ReduceOp op, const ServerPlan& plan, ServerUpdate update,
                             const CallOptions& call) {
  const CallKey key{Collective::kPushPull, type, op, 0, count};
  if (!update && is_cacheable(plan) && ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::push_pull(state().caller(), in, out, count, {type, call}, op, plan),
      std::move(update));
}

Work Communicator::push_pull_async(const void* in, void* out, std::size_t count, ElementType type,
                                   ReduceOp op, const ServerPlan& plan, ServerUpdate update,
                                   const CallOptions& call) {
  return issue(held(),
               checked_calls::push_pull(state().caller(), in, out, count, {type, call}, op, plan),
               std::move(update));
}

void Communicator::push(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                        const ServerPlan& plan, ServerUpdate update, const CallOptions& call) {
  const CallKey key{Collective::kPush, type, op, 0, count};
  if (!update && is_cacheable(plan) && ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::push(state().caller(), in, out, count, {type, call}, op, plan),
      std::move(update));
}

Work Communicator::push_async(const void* in, void* out, std::size_t count, ElementType type,
                              ReduceOp op, const ServerPlan& plan, ServerUpdate update,
                              const CallOptions& call) {
  return issue(held(),
               checked_calls::push(state().caller(), in, out, count, {type, call}, op, plan),
               std::move(update));
}

void Communicator::pull(const void* in, void* out, std::size_t count, ElementType type,
                        const ServerPlan& plan, const CallOptions& call) {
  const CallKey key{Collective::kPull, type, ReduceOp::kSum, 0, count};
  if (is_cacheable(plan) && ran_from_cache(state(), key, in, out, call)) return;
  run(state(), checked_calls::pull(state().caller(), in, out, count, {type, call}, plan));
}

Work Communicator::pull_async(const void* in, void* out, std::size_t count, ElementType type,
                              const ServerPlan& plan, const CallOptions& call) {
  return issue(held(), checked_calls::pull(state().caller(), in, out, count, {type, call}, plan));
}

// --- reductions with a user function ---

void Communicator::all_reduce(const void* in, void* out, std::size_t count,
                              const UserReduceOp& reducer, const CallOptions& call) {
  run(state(), checked_calls::all_reduce(in, out, count, by(reducer, call), ReduceOp::kUser));
}

Work Communicator::all_reduce_async(const void* in, void* out, std::size_t count,
                                    const UserReduceOp& reducer, const CallOptions& call) {
  return issue(held(),
               checked_calls::all_reduce(in, out, count, by(reducer, call), ReduceOp::kUser));
}

void Communicator::reduce_scatter(const void* in, void* out, std::size_t count,
                                  const UserReduceOp& reducer, const CallOptions& call) {
  run(state(), checked_calls::reduce_scatter(state().caller(), in, out, count, by(reducer, call),
                                             ReduceOp::kUser));
}

Work Communicator::reduce_scatter_async(const void* in, void* out, std::size_t count,
                                        const UserReduceOp& reducer, const CallOptions& call) {
  return issue(held(), checked_calls::reduce_scatter(state().caller(), in, out, count,
                                                     by(reducer, call), ReduceOp::kUser));
}

void Communicator::reduce_scatter_v(const void* in, void* out, Counts counts,
                                    const UserReduceOp& reducer, const CallOptions& call) {
  run(state(), checked_calls::reduce_scatter_v(state().caller(), in, out, counts, by(reducer, call),
                                               ReduceOp::kUser));
}

Work Communicator::reduce_scatter_v_async(const void* in, void* out, Counts counts,
                                          const UserReduceOp& reducer, const CallOptions& call) {
  return issue(held(), checked_calls::reduce_scatter_v(state().caller(), in, out, counts,
                                                       by(reducer, call), ReduceOp::kUser));
}

void Communicator::reduce(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                          int root, const CallOptions& call) {
  run(state(), checked_calls::reduce(state().caller(), in, out, count, by(reducer, call),
                                     ReduceOp::kUser, root));
}

Work Communicator::reduce_async(const void* in, void* out, std::size_t count,
                                const UserReduceOp& reducer, int root, const CallOptions& call) {
  return issue(held(), checked_calls::reduce(state().caller(), in, out, count, by(reducer, call),
                                             ReduceOp::kUser, root));
}

void Communicator::scan(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                        const CallOptions& call) {
  run(state(), checked_calls::scan(Collective::kScan, state().caller(), in, out, count,
                                   by(reducer, call), ReduceOp::kUser));
}

Work Communicator::scan_async(const void* in, void* out, std::size_t count,
                              const UserReduceOp& reducer, const CallOptions& call) {
  return issue(held(), checked_calls::scan(Collective::kScan, state().caller(), in, out, count,
                                           by(reducer, call), ReduceOp::kUser));
}

void Communicator::exclusive_scan(const void* in, void* out, std::size_t count,
                                  const UserReduceOp& reducer, const CallOptions& call) {
  run(state(), checked_calls::scan(Collective::kExclusiveScan, state().caller(), in, out, count,
                                   by(reducer, call), ReduceOp::kUser));
}

Work Communicator::exclusive_scan_async(const void* in, void* out, std::size_t count,
                                        const UserReduceOp& reducer, const CallOptions& call) {
  return issue(held(), checked_calls::scan(Collective::kExclusiveScan, state().caller(), in, out,
                                           count, by(reducer, call), ReduceOp::kUser));
}

void Communicator::push_pull(const void* in, void* out, std::size_t count,
                             const UserReduceOp& reducer, const ServerPlan& plan,
                             ServerUpdate update, const CallOptions& call) {
  run(state(),
      checked_calls::push_pull(state().caller(), in, out, count, by(reducer, call), ReduceOp::kUser,
                               plan),
      std::move(update));
}

Work Communicator::push_pull_async(const void* in, void* out, std::size_t count,
                                   const UserReduceOp& reducer, const ServerPlan& plan,
                                   ServerUpdate update, const CallOptions& call) {
  return issue(held(),
               checked_calls::push_pull(state().caller(), in, out, count, by(reducer, call),
                                        ReduceOp::kUser, plan),
               std::move(update));
}

void Communicator::push(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                        const ServerPlan& plan, ServerUpdate update, const CallOptions& call) {
  run(state(),
      checked_calls::push(state().caller(), in, out, count, by(reducer, call), ReduceOp::kUser,
                          plan),
      std::move(update));
}

Work Communicator::push_async(const void* in, void* out, std::size_t count,
                              const UserReduceOp& reducer, const ServerPlan& plan,
                              ServerUpdate update, const CallOptions& call) {
  return issue(held(),
               checked_calls::push(state().caller(), in, out, count, by(reducer, call),
                                   ReduceOp::kUser, plan),
               std::move(update));
}

bool Communicator::progress() {
  const std::shared_ptr<State> state = held();  // a callback may destroy this
  return state->progress();
}

// A callback may destroy this.
void Communicator::abort(std::string_view reason) { std::shared_ptr(held())->abort(reason); }

std::shared_ptr<std::byte[]> Communicator::allocate(std::size_t bytes) {
  try {
    return state().allocate(bytes);
  } catch (const Error& error) {
    throw Error(error.code(), error.peer(),
                fmt::format("rank {}: allocate: {}", state().caller().rank, error.what()));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kSystem, kNoPeer,
                fmt::format("rank {}: allocate: there is no memory for {} bytes: ask for less, or "
                            "see ulimit -v",
                            state().caller().rank, bytes));
  }
}

}  // namespace kolo
