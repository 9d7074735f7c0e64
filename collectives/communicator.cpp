#include "collectives/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "collectives/engine/call_request.h"
#include "collectives/engine/checked_call.h"
#include "collectives/engine/communicator_state.h"
#include "collectives/engine/submission.h"
#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

template <typename Checked>
bool ran_from_cache(Engine& engine, const call_requests::Request<Checked>& request) {
  return request.may_be_cached &&
         submission::ran_from_cache(engine, request.key, request.in, request.out, request.options);
}

template <typename Checked>
void run(Engine& engine, const call_requests::Request<Checked>& request) {
  if (!ran_from_cache(engine, request)) submission::run(engine, request.checked());
}

template <typename Checked>
void run(Engine& engine, const call_requests::Request<Checked>& request, ServerUpdate update) {
  if (!ran_from_cache(engine, request))
    submission::run(engine, request.checked(), std::move(update));
}

template <typename Checked>
Work issue(const std::shared_ptr<Engine>& engine, const call_requests::Request<Checked>& request,
           ServerUpdate update = {}) {
  if (request.may_be_cached) {
    if (auto work = submission::issued_from_cache(engine, request.key, request.in, request.out,
                                                  request.options)) {
      return *std::move(work);
    }
  }
  return submission::issue(engine, request.checked(), std::move(update));
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

void Communicator::all_reduce(const Buffer& data, const Reduction& op, const CallOptions& call) {
  all_reduce(data, data, op, call);
}

Work Communicator::all_reduce_async(const Buffer& data, const Reduction& op,
                                    const CallOptions& call) {
  return all_reduce_async(data, data, op, call);
}

void Communicator::all_reduce(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                              const CallOptions& call) {
  State& self = state();
  run(self, call_requests::all_reduce(self, in, out, op, call));
}

Work Communicator::all_reduce_async(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                                    const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::all_reduce(*self, in, out, op, call));
}

void Communicator::reduce_scatter(const ConstBuffer& all, const Buffer& chunk, const Reduction& op,
                                  const CallOptions& call) {
  State& self = state();
  run(self, call_requests::reduce_scatter(self, all, chunk, op, call));
}

Work Communicator::reduce_scatter_async(const ConstBuffer& all, const Buffer& chunk,
                                        const Reduction& op, const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::reduce_scatter(*self, all, chunk, op, call));
}

void Communicator::all_gather(const ConstBuffer& chunk, const Buffer& all,
                              const CallOptions& call) {
  State& self = state();
  run(self, call_requests::all_gather(self, chunk, all, call));
}

Work Communicator::all_gather_async(const ConstBuffer& chunk, const Buffer& all,
                                    const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::all_gather(*self, chunk, all, call));
}

void Communicator::broadcast(const Buffer& data, int root, const CallOptions& call) {
  State& self = state();
  run(self, call_requests::broadcast(self, data, root, call));
}

Work Communicator::broadcast_async(const Buffer& data, int root, const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::broadcast(*self, data, root, call));
}

void Communicator::reduce(const Buffer& data, int root, const Reduction& op,
                          const CallOptions& call) {
  reduce(data, data, root, op, call);
}

Work Communicator::reduce_async(const Buffer& data, int root, const Reduction& op,
                                const CallOptions& call) {
  return reduce_async(data, data, root, op, call);
}

void Communicator::reduce(const ConstBuffer& in, const Buffer& out, int root, const Reduction& op,
                          const CallOptions& call) {
  State& self = state();
  run(self, call_requests::reduce(self, in, out, root, op, call));
}

Work Communicator::reduce_async(const ConstBuffer& in, const Buffer& out, int root,
                                const Reduction& op, const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::reduce(*self, in, out, root, op, call));
}

void Communicator::gather(const ConstBuffer& chunk, const Buffer& all, int root,
                          const CallOptions& call) {
  State& self = state();
  run(self, call_requests::gather(self, chunk, all, root, call));
}

Work Communicator::gather_async(const ConstBuffer& chunk, const Buffer& all, int root,
                                const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::gather(*self, chunk, all, root, call));
}

void Communicator::scatter(const ConstBuffer& all, const Buffer& chunk, int root,
                           const CallOptions& call) {
  State& self = state();
  run(self, call_requests::scatter(self, all, chunk, root, call));
}

Work Communicator::scatter_async(const ConstBuffer& all, const Buffer& chunk, int root,
                                 const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::scatter(*self, all, chunk, root, call));
}

void Communicator::all_to_all(const ConstBuffer& in, const Buffer& out, const CallOptions& call) {
  State& self = state();
  run(self, call_requests::all_to_all(self, in, out, call));
}

Work Communicator::all_to_all_async(const ConstBuffer& in, const Buffer& out,
                                    const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::all_to_all(*self, in, out, call));
}

void Communicator::scan(const Buffer& data, const Reduction& op, const CallOptions& call) {
  scan(data, data, op, call);
}

Work Communicator::scan_async(const Buffer& data, const Reduction& op, const CallOptions& call) {
  return scan_async(data, data, op, call);
}

void Communicator::scan(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                        const CallOptions& call) {
  State& self = state();
  run(self, call_requests::scan(Collective::kScan, self, in, out, op, call));
}

Work Communicator::scan_async(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                              const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::scan(Collective::kScan, *self, in, out, op, call));
}

void Communicator::exclusive_scan(const Buffer& data, const Reduction& op,
                                  const CallOptions& call) {
  exclusive_scan(data, data, op, call);
}

Work Communicator::exclusive_scan_async(const Buffer& data, const Reduction& op,
                                        const CallOptions& call) {
  return exclusive_scan_async(data, data, op, call);
}

void Communicator::exclusive_scan(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                                  const CallOptions& call) {
  State& self = state();
  run(self, call_requests::scan(Collective::kExclusiveScan, self, in, out, op, call));
}

Work Communicator::exclusive_scan_async(const ConstBuffer& in, const Buffer& out,
                                        const Reduction& op, const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::scan(Collective::kExclusiveScan, *self, in, out, op, call));
}

void Communicator::barrier(const CallOptions& call) { run(state(), call_requests::barrier(call)); }

Work Communicator::barrier_async(const CallOptions& call) {
  return issue(held(), call_requests::barrier(call));
}

void Communicator::push_pull(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                             const ServerPlan& plan, ServerUpdate update, const CallOptions& call) {
  State& self = state();
  const auto request = call_requests::push_pull(self, in, out, op, plan, update, call);
  run(self, request, std::move(update));
}

Work Communicator::push_pull_async(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                                   const ServerPlan& plan, ServerUpdate update,
                                   const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  const auto request = call_requests::push_pull(*self, in, out, op, plan, update, call);
  return issue(self, request, std::move(update));
}

void Communicator::push(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                        const ServerPlan& plan, ServerUpdate update, const CallOptions& call) {
  State& self = state();
  const auto request = call_requests::push(self, in, out, op, plan, update, call);
  run(self, request, std::move(update));
}

Work Communicator::push_async(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                              const ServerPlan& plan, ServerUpdate update,
                              const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  const auto request = call_requests::push(*self, in, out, op, plan, update, call);
  return issue(self, request, std::move(update));
}

void Communicator::pull(const ConstBuffer& in, const Buffer& out, const ServerPlan& plan,
                        const CallOptions& call) {
  State& self = state();
  run(self, call_requests::pull(self, in, out, plan, call));
}

Work Communicator::pull_async(const ConstBuffer& in, const Buffer& out, const ServerPlan& plan,
                              const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::pull(*self, in, out, plan, call));
}

void Communicator::reduce_scatter_v(const ConstBuffer& all, const Buffer& share, Counts counts,
                                    const Reduction& op, const CallOptions& call) {
  submission::run(state(),
                  checked_calls::reduce_scatter_v(state().caller(), all, share, counts, op, call));
}

Work Communicator::reduce_scatter_v_async(const ConstBuffer& all, const Buffer& share,
                                          Counts counts, const Reduction& op,
                                          const CallOptions& call) {
  return submission::issue(
      held(), checked_calls::reduce_scatter_v(state().caller(), all, share, counts, op, call));
}

void Communicator::all_gather_v(const ConstBuffer& share, const Buffer& all, Counts counts,
                                const CallOptions& call) {
  submission::run(state(), checked_calls::all_gather_v(state().caller(), share, all, counts, call));
}

Work Communicator::all_gather_v_async(const ConstBuffer& share, const Buffer& all, Counts counts,
                                      const CallOptions& call) {
  return submission::issue(held(),
                           checked_calls::all_gather_v(state().caller(), share, all, counts, call));
}

void Communicator::gather_v(const ConstBuffer& share, const Buffer& all, Counts counts, int root,
                            const CallOptions& call) {
  submission::run(state(),
                  checked_calls::gather_v(state().caller(), share, all, counts, root, call));
}

Work Communicator::gather_v_async(const ConstBuffer& share, const Buffer& all, Counts counts,
                                  int root, const CallOptions& call) {
  return submission::issue(
      held(), checked_calls::gather_v(state().caller(), share, all, counts, root, call));
}

void Communicator::scatter_v(const ConstBuffer& all, const Buffer& share, Counts counts, int root,
                             const CallOptions& call) {
  submission::run(state(),
                  checked_calls::scatter_v(state().caller(), all, share, counts, root, call));
}

Work Communicator::scatter_v_async(const ConstBuffer& all, const Buffer& share, Counts counts,
                                   int root, const CallOptions& call) {
  return submission::issue(
      held(), checked_calls::scatter_v(state().caller(), all, share, counts, root, call));
}

void Communicator::all_to_all_v(const ConstBuffer& in, Counts gives, const Buffer& out, Counts gets,
                                const CallOptions& call) {
  submission::run(state(),
                  checked_calls::all_to_all_v(state().caller(), in, gives, out, gets, call));
}

Work Communicator::all_to_all_v_async(const ConstBuffer& in, Counts gives, const Buffer& out,
                                      Counts gets, const CallOptions& call) {
  return submission::issue(
      held(), checked_calls::all_to_all_v(state().caller(), in, gives, out, gets, call));
}

void Communicator::send(const ConstBuffer& data, int to, const CallOptions& call) {
  State& self = state();
  run(self, call_requests::send(self, data, to, call));
}

Work Communicator::send_async(const ConstBuffer& data, int to, const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::send(*self, data, to, call));
}

void Communicator::receive(const Buffer& data, int from, const CallOptions& call) {
  State& self = state();
  run(self, call_requests::receive(self, data, from, call));
}

Work Communicator::receive_async(const Buffer& data, int from, const CallOptions& call) {
  const std::shared_ptr<State>& self = held();
  return issue(self, call_requests::receive(*self, data, from, call));
}

void Communicator::send_receive(const ConstBuffer& sent, int to, const Buffer& received, int from,
                                const CallOptions& call) {
  const checked_calls::Exchange both =
      checked_calls::exchange(state().caller(), sent, to, received, from, call);
  if (call.stream) return state().exchange_on_stream(both);
  if (both.is_copy) {
    state().require_alive();
    std::copy_n(static_cast<const std::byte*>(both.send.in), sent.count * both.send.element_bytes,
                static_cast<std::byte*>(both.send.out));
    return;
  }
  Work receive = submission::issue(held(), both.receive);
  submission::run(state(), both.send);
  receive.wait();
}

bool Communicator::progress() {
  const std::shared_ptr<State> state = held();  // a callback may destroy this
  return state->progress();
}

int Communicator::descriptor() { return state().descriptor(); }

// A callback may destroy this.
void Communicator::abort(std::string_view reason) { std::shared_ptr(held())->abort(reason); }

void Communicator::abort(ErrorCode code, int peer, std::string_view reason) {
  std::shared_ptr(held())->abort(code, peer, reason);
}

void Communicator::stop(std::string_view reason) { std::shared_ptr(held())->stop(reason); }

std::shared_ptr<std::byte[]> Communicator::allocate(std::size_t bytes) {
  try {
    return state().allocate(bytes);
  } catch (const Error& error) {
    throw Error(error.code(), error.peer(),
                fmt::format("rank {}: allocate: {}", state().caller().rank, error.what()));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory, kNoPeer,
                fmt::format("rank {}: allocate: there is no memory for {} bytes: ask for less, or "
                            "see ulimit -v",
                            state().caller().rank, bytes));
  }
}

}  // namespace kolo::inline v0
