#include "collectives/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectives/algorithms/algorithm_table.h"
#include "transports/base/check.h"
#include "transports/base/topology.h"
#include "transports/posix/host/identity.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::inline v0 {
namespace {

constexpr auto kNever = Deadline::max();

// Length of the longest chunk in elements. It must be the same on all ranks, because the segment
// length depends on it. If each rank knows only its own lengths, returns the maximum of any call.
std::size_t longest_chunk(const Call& call, const Schedule& schedule) {
  if (call.has_own_lengths) return kLongestCount / call.element_bytes;
  if (!call.lengths.empty()) return *std::ranges::max_element(call.lengths);
  return chunk_count(call.count, schedule.chunks / schedule.spans, 0);
}

// Fills in the fields of a user function (call_header.h). A segment holds at least one element.
void describe_user(CallHeader& header, const UserReduceOp& reducer, std::uint64_t plan) {
  const std::size_t least = (reducer.element_bytes + kSegmentAlignment - 1) / kSegmentAlignment;
  const std::size_t units = std::max<std::size_t>(header.segment_units, least);
  header.type = ElementType::kUint8;
  header.op = ReduceOp::kUser;
  header.segment_units = static_cast<std::uint32_t>(reducer.element_bytes << 16 |
                                                    std::min<std::size_t>(units, 0xffff));
  header.count_and_plan = header.count() << 16 | reducer.tag;
  if (!has_root(header.collective)) header.root = static_cast<std::uint16_t>(plan);
}

// At most a century, so that a deadline computed from it does not overflow.
std::chrono::milliseconds bounded(std::chrono::milliseconds timeout) {
  constexpr std::chrono::hours kCentury(24 * 36'525);
  return std::min<std::chrono::milliseconds>(timeout, kCentury);
}

constexpr std::size_t kLongestName = 256;

}  // namespace

CommunicatorOptions validated_options(CommunicatorOptions options) {
  if (options.timeout.count() == 0) options.timeout = read_settings().timeout;
  check(options.timeout.count() > 0,
        fmt::format("a timeout of {} ms: give more than 0", options.timeout.count()));
  check(options.reproducibility <= Reproducibility::kInvariant,
        fmt::format("{} is not a mode of reproducibility",
                    static_cast<int>(options.reproducibility)));
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  check(options.name.size() <= kLongestName && !std::ranges::any_of(options.name, is_control),
        "the name of a communicator has at most 256 characters, and no control characters");
  options.timeout = bounded(options.timeout);
  return options;
}

Engine::Engine(int rank, int size, std::shared_ptr<Store> store, const CommunicatorOptions& options)
    : rank_(rank),
      size_(size),
      options_(options),
      host_(posix::host_name()),
      failure_(std::make_shared<JobFailure>()) {
  check(store != nullptr, "a communicator needs a store");
  store_ = joined_once(store);
  begin([&] {
    options_ = validated_options(options);
    check(size >= 1 && rank >= 0 && rank < size,
          fmt::format("a communicator of {} ranks has no rank {}", size, rank));
    check(options.host_id.empty() || is_host_id(options.host_id),
          fmt::format("a host cannot be called '{}': a name has at most 64 visible characters, "
                      "without blanks",
                      options.host_id));
    tell_unknown_settings(*store, options_.log);
    meet(*store);
    agree_on_planner(*store, Clock::now() + options_.timeout);
  });
}

Engine::Engine(int rank, Engine& parent, const CommunicatorOptions& options, std::vector<int> ranks)
    : rank_(rank),
      size_(static_cast<int>(ranks.size())),
      options_(options),
      host_(posix::host_name()),
      members_(parent.job_ranks(ranks)),
      store_(joined_once(parent.store_)),
      failure_(parent.failure_) {
  begin([&] {
    GroupOrigin origin{parent, {.name = options_.name, .ranks = std::move(ranks)}};
    meet(*parent.store_, &origin);
    planner_ = Planner(situation(), parent.planner_.costs(), parent.planner_.table());
    if (parent.stream_planner_) plan_streams(parent.stream_planner_->costs());
  });
}

// Runs the steps up to the first operation. If one throws anything, the job's failure is posted.
void Engine::begin(const std::function<void()>& steps) {
  try {
    steps();
    start_progress_thread();
  } catch (const Error& error) {
    const Error cause = settle(with_missing_connections(at_start(error)));
    leave();
    if (transport_) transport_->quiesce();  // no peer waits for its data
    throw cause;
  } catch (...) {
    settle_current_exception();
    leave();
    throw;
  }
}

// An exception that is not an Error is this rank's own failure. It is posted if memory suffices.
void Engine::settle_current_exception() noexcept {
  try {
    settle(explain(nullptr, std::current_exception()));
  } catch (...) {
    // The store sees this rank leave.
  }
}

void Engine::start_progress_thread() {
  const bool streams_need_progress = streams_ && size_ > 1 && streams_->is_one_with_host();
  if (!options_.progress_thread && !streams_need_progress) return;
  thread_ = std::thread([this] {
    serve();
    keep_.reset();  // the last reference, if a callback closed the engine
  });
}

// Joins the job under keys of this communicator's own, and connects.
void Engine::meet(Store& store, GroupOrigin* origin) {
  // First: a newcomer that is refused must change nothing. A communicator of one rank joins no job:
  // other users of the store are not its ranks.
  store_->join(rank_, size_ > 1 ? options_.name : "", size_);
  // Separates its keys from those of others, and of earlier ones with the same name.
  const auto use = store.add(use_key(options_.name, static_cast<std::size_t>(rank_)), 1);
  key_prefix_ = fmt::format("{}/{}/", options_.name, use);
  if (origin != nullptr) {
    origin->call.use = use;
    origin->parent.begin_group(origin->call);
  }
  store_ = prefixed(store_, key_prefix_);
  make_recorder();
  connect(Clock::now() + options_.timeout, origin);
}

void Engine::connect(Deadline deadline, GroupOrigin* origin) {
  if (size_ > 1 && members_.empty()) require_one_size(*store_, rank_, size_, deadline);
  const std::string host_id = options_.host_id.empty() ? read_settings().host_id : options_.host_id;
  make_streams();
  const auto locate = [&](Deadline until) {
    placement_ = find_topology(*store_, rank_, size_, until, host_id,
                               streams_ ? streams_->describe_peer_access() : "");
  };
  origin == nullptr ? locate(deadline) : meet_members(*origin, deadline, locate);
  TransportRequest request;
  request.rank = rank_;
  request.size = size_;
  request.store = prefixed(store_, "transport/");
  request.deadline = deadline;
  request.local_ranks = placement_.local_ranks;
  request.host_id = host_id;
  request.log = options_.log;
  request.devices = placement_.devices;
  request.topology = std::make_shared<const Topology>(placement_);
  if (streams_) request.device = streams_->request();
  transport_ = make_transport(options_.transport, request);
  try {
    policy_ = std::make_unique<WaitPolicy>(placement_.local_ranks, placement_.local_cores);
  } catch (const Error& error) {  // out of file descriptors
    throw Error(
        error.code(), rank_,
        fmt::format("rank {} ({}): cannot wait for others: {}", rank_, host_, error.what()));
  }
  for (int peer = 0; peer < size_; ++peer) {
    channels_.push_back(peer == rank_ ? nullptr : &transport_->channel(peer));
  }
  plans_ = std::make_unique<PlanCache>(rank_, channels_, placement_.hosts, placement_.cache_bytes,
                                       options_.memory.get());
  agree_on_limits(deadline);
  join_devices();
  messages_.resize(2 * channels_.size());
  last_messages_.resize(messages_.size());
  queued_messages_.resize(messages_.size());
  running_.reserve(messages_.size());
  waits_.resize(channels_.size() + 1);
}

// Channels differ between ranks on several hosts, or if a shape treats pairs differently.
void Engine::agree_on_limits(Deadline deadline) {
  if (placement_.is_one_host && read_settings().shape.empty()) return;
  store_->set(fmt::format("limits/{}", rank_), plans_->limits());
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) plans_->respect(store_->get(fmt::format("limits/{}", peer), deadline));
  }
}

Engine::~Engine() { close(); }

// --- the queue ---

std::size_t Engine::direction_of(const Call& call) const {
  if (call.collective != Collective::kMessage) return kNoDirection;
  const bool sends = call.root == rank_;
  return 2 * static_cast<std::size_t>(sends ? call.peer : call.root) + (sends ? 0 : 1);
}

// Makes the call header, with the next sequence number. Messages are counted per direction, since a
// rank without part in a message does not count it. Needs the lock.
CallHeader Engine::header_of(const Call& call, const Schedule& schedule) {
  CallHeader header;
  header.collective = call.collective;
  header.algorithm = call.algorithm;
  header.type = call.type;
  header.op = call.op;
  header.root = static_cast<std::uint16_t>(call.root);
  header.sequence = next_sequence(direction_of(call));
  const std::size_t asked = call.segment_bytes != 0 ? call.segment_bytes : options_.segment_bytes;
  header.segment_units = static_cast<std::uint32_t>(
      plans_->segments().bytes(schedule, longest_chunk(call, schedule) * call.element_bytes, asked,
                               call.op == ReduceOp::kScaledSum) /
      kSegmentAlignment);
  const std::uint64_t plan = call.servers != nullptr                        ? hash(*call.servers)
                             : call.has_own_lengths || call.lengths.empty() ? 0
                                                                            : hash(call.lengths);
  header.count_and_plan = static_cast<std::uint64_t>(call.count) << 16 | plan;
  if (call.reducer != nullptr) describe_user(header, *call.reducer, plan);
  if (call.stream && !streams_->is_one_with_host()) header.segment_units |= CallHeader::kOnStream;
  if (call.is_captured) header.segment_units |= CallHeader::kCaptured;
  return header;
}

// Gives the operation its executor from the plan cache. Needs the lock.
void Engine::find_executor(const Call& call, Operation& operation) {
  if (call.reducer != nullptr) plans_->require_carried(call.element_bytes);
  const bool has_update = static_cast<bool>(operation.update);
  const PlanCache::Key key{call.algorithm, call.root,    call.peer,
                           has_update,     call.servers, call.count * call.element_bytes};
  if (!call.stream) {
    operation.executor = &plans_->find(key);
  } else {
    operation.on_stream = &streams_->find(call, key, *plans_);
    operation.stream = call.stream->handle;
    operation.is_captured = call.is_captured;
  }
}

// Checks the call, chooses its algorithm and fills the operation. Needs the lock until link(),
// which follows.
void Engine::prepare(Call& call, Operation& operation) {
  failure_->check();
  check(!is_closing_, "an operation was issued while its communicator is being destroyed");
  if (streams_ != nullptr || call.stream) require_places(call);
  choose(call);
  find_executor(call, operation);
  operation.timeout = call.timeout.count() > 0 ? bounded(call.timeout) : options_.timeout;
  operation.lengths = call.lengths;
  operation.direction = call.stream ? kNoDirection : direction_of(call);
  const Schedule& schedule =
      call.stream ? operation.on_stream->schedule() : operation.executor->schedule();
  const CallHeader header = header_of(call, schedule);
  operation.binding = {call.in,           call.out,          header,
                       &operation.update, operation.lengths, call.has_own_lengths,
                       call.reducer,      call.scale,        recorder_.get()};
}

// From here on the driver may run it if it is a message: the driver reads `next` without the lock.
void Engine::link(Operation& operation) {
  ++(operation.direction == kNoDirection ? queued_collectives_
                                         : queued_messages_[operation.direction]);
  operation.previous = head_ == nullptr ? nullptr : tail_;
  if (head_ == nullptr) {
    head_ = &operation;
  } else {
    tail_->next.store(&operation, std::memory_order_release);
  }
  tail_ = &operation;
}

void Engine::run(Call& call, Operation& operation) {
  require_not_driving("a blocking call");
  require_alive();
  const bool names_algorithm = call.algorithm != kPlannerChooses;
  std::unique_lock lock(mutex_);
  prepare(call, operation);
  if (!names_algorithm) cache_call(call, operation);
  if (has_driver_ || head_ != nullptr) {
    operation.deadline = Clock::now() + operation.timeout;
    link(operation);
    wake_for(operation);
    lock.unlock();
    wait(operation, kNever);
    return;
  }
  link(operation);
  has_driver_ = true;
  lock.unlock();
  drive(&operation, kNever, Until::kDone);
  if (operation.failure) throw Error(*operation.failure);
}

void Engine::issue(Call& call, const std::shared_ptr<Operation>& operation) {
  require_alive();
  const bool names_algorithm = call.algorithm != kPlannerChooses;
  const std::lock_guard lock(mutex_);
  prepare(call, *operation);
  if (!names_algorithm && !call.is_persistent) cache_call(call, *operation);
  put_in_queue(operation);
}

// Adds an asynchronous operation to the queue, which then owns it, and wakes the driver. Needs the
// lock.
void Engine::put_in_queue(const std::shared_ptr<Operation>& operation) {
  operation->deadline = Clock::now() + operation->timeout;
  operation->self = operation;
  link(*operation);
  wake_for(*operation);
  if (event_descriptor_ != nullptr) event_descriptor_->ring();
  changed_.notify_all();
}

void Engine::plan(const Call& call, Operation& operation) {
  operation.plan = std::make_unique<Plan>();
  operation.plan->call = call;
  if (call.servers != nullptr) {
    operation.plan->servers = *call.servers;
    operation.plan->call.servers = &operation.plan->servers;
  }
  operation.is_done = true;
  require_alive();
  const std::lock_guard lock(mutex_);
  if (streams_ != nullptr || call.stream) require_places(operation.plan->call);
  choose(operation.plan->call);
  find_executor(operation.plan->call, operation);
}

void Engine::restart(const std::shared_ptr<Operation>& operation) {
  {
    const std::lock_guard lock(mutex_);
    check(operation->is_done, "start() on an operation that is in flight; wait for it first");
    operation->is_done = operation->is_started = operation->has_published_wait = false;
    operation->next_wait_report = {};
    operation->failure.reset();
    operation->next = operation->behind = nullptr;
  }
  try {
    issue(operation->plan->call, operation);
  } catch (...) {
    operation->is_done = true;
    throw;
  }
}

bool Engine::call_when_done(Operation& operation, const WorkCallback& callback) {
  const std::lock_guard lock(mutex_);
  if (operation.is_done) return false;
  operation.callbacks.push_back(callback);
  return true;
}

void Engine::wait(Operation& operation, Deadline limit) {
  if (!operation.is_done) require_not_driving("a wait");
  std::unique_lock lock(mutex_);
  while (!operation.is_done) {
    if (!has_driver_) {
      if (finish_at_head(operation, lock)) break;
      has_driver_ = true;
      lock.unlock();
      drive(&operation, limit, Until::kDone);
      lock.lock();
    } else {
      await_driver(lock, limit);
    }
    if (!operation.is_done && Clock::now() >= limit) {
      throw Error(ErrorCode::kDeadline, kNoPeer,
                  fmt::format("rank {} ({}): {} is still in flight at the deadline given to wait()",
                              rank_, host_, describe(operation.binding.header)));
    }
  }
  if (operation.failure) throw Error(*operation.failure);
}

bool Engine::wait_any(std::span<const Operation* const> operations, Deadline limit) {
  const auto has_ended = [&] {
    return std::ranges::any_of(operations,
                               [](const Operation* one) { return one->is_done.load(); });
  };
  if (!has_ended()) require_not_driving("a wait");
  std::unique_lock lock(mutex_);
  while (!has_ended()) {
    if (Clock::now() >= limit) return false;
    if (has_driver_) {
      await_driver(lock, limit);
      continue;
    }
    has_driver_ = true;
    lock.unlock();
    drive(nullptr, limit, Until::kOneEnded);
    lock.lock();
  }
  return true;
}

// Needs the lock, and has it again at the end. Waits until something has changed: another thread
// drives.
void Engine::await_driver(std::unique_lock<std::mutex>& lock, Deadline limit) {
  ++waiters_;
  changed_.wait_until(lock, std::min(limit, Clock::now() + options_.timeout));
  --waiters_;
  changed_.notify_all();  // the progress thread yields to waiters only
}

bool Engine::is_in_flight() {
  const std::lock_guard lock(mutex_);
  return head_ != nullptr;
}

// --- the end ---

void Engine::close(std::shared_ptr<Engine> engine) noexcept {
  Engine& closing = *engine;
  if (closing.thread_.get_id() == std::this_thread::get_id()) {
    closing.thread_.detach();
    closing.keep_ = std::move(engine);
  }
  closing.close();
}

void Engine::close() noexcept {
  if (is_closed_) return;
  is_closed_ = true;
  say_goodbye();
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (is_driving()) {
    closer_ = std::this_thread::get_id();
  } else {
    finish_closing();
  }
}

// Operations in flight are not advanced: an exception may have freed their memory already.
void Engine::say_goodbye() noexcept {
  try {
    if (!is_in_flight()) progress();
    if (!failure_->is_known() && head_ == nullptr && sequence_ > 0) {
      for (Channel* channel : channels_) {
        if (channel != nullptr) check_stray(*channel, last_done_);
      }
    }
    abort_what_is_left();
    if (std::uncaught_exceptions() > exceptions_) note_exception();
  } catch (const Error& error) {
    settle(error);  // so that the other ranks learn of it
  } catch (...) {
    // There is no caller left to report it to.
  }
}

void Engine::finish_closing() noexcept {
  try {
    write_timeline();
  } catch (const std::exception& error) {  // a destructor cannot throw
    write_line(options_.log, error.what());
  }
  leave();
  if (failure_->is_known() && transport_) transport_->quiesce();  // no peer waits for its data
  transport_.reset();
  streams_.reset();
}

void Engine::leave() noexcept {
  try {
    if (!key_prefix_.empty()) store_->retire("", size_);  // this communicator's keys
    store_->leave();
  } catch (...) {
    // The store is gone already.
  }
}

}  // namespace kolo::inline v0
