#include "collectives/engine.h"

#include <fmt/format.h>

#include "collectives/algorithm_table.h"
#include "transports/check.h"
#include "transports/placement.h"
#include "transports/posix/identity.h"
#include "transports/registry.h"

namespace kolo {
namespace {

constexpr auto kNever = Deadline::max();

// Blocked rounds after which headers are looked at that have come but are not yet needed.
constexpr std::uint64_t kRoundsBeforeLook = 64;

// A wait this long is worth asking what the others called.
constexpr auto kCompareAfter = std::chrono::seconds(1);

// Keeps a communicator's keys apart from those of others and of earlier ones with its name.
std::string key_prefix(Store& store, const std::string& name, int rank) {
  const auto use = store.add(fmt::format("{}/uses/{}", name, rank), 1);
  return fmt::format("{}/{}/", name, use);
}

}  // namespace

Engine::Engine(int rank, int size, std::shared_ptr<Store> store, const CommunicatorOptions& options)
    : rank_(rank), size_(size), options_(options), host_(posix::host_name()) {
  check(store != nullptr, "a communicator needs a store");
  check(size >= 1 && rank >= 0 && rank < size,
        fmt::format("a communicator of {} ranks has none of number {}", size, rank));
  store_ = prefixed(store, key_prefix(*store, options.name, rank));
  try {
    connect();
  } catch (const Error& error) {
    const Error cause = settle(error);
    leave();
    throw cause;
  } catch (...) {
    leave();
    throw;
  }
  if (options_.progress_thread) thread_ = std::thread([this] { serve(); });
}

void Engine::connect() {
  const Deadline deadline = Clock::now() + options_.timeout;
  store_->join(rank_);
  const Placement placement = find_placement(*store_, rank_, size_, deadline);
  TransportRequest request;
  request.rank = rank_;
  request.size = size_;
  request.store = prefixed(store_, "transport/");
  request.deadline = deadline;
  request.local_ranks = placement.local_ranks;
  transport_ = make_transport(options_.transport, request);
  policy_ = std::make_unique<WaitPolicy>(placement.local_ranks, placement.local_cores);
  for (int peer = 0; peer < size_; ++peer) {
    channels_.push_back(peer == rank_ ? nullptr : &transport_->channel(peer));
  }
  plans_ = std::make_unique<PlanCache>(rank_, channels_);
}

Engine::~Engine() { close(); }

// --- the queue ---

// Needs the lock.
void Engine::push(const Call& call, Operation& operation) {
  if (poison_) throw Error(*poison_);
  check(!is_closing_, "an operation was issued while its communicator is being destroyed");
  Executor& executor = plans_->find({call.algorithm, call.root, static_cast<bool>(operation.update),
                                     call.servers, call.count * element_bytes(call.type)});
  CallHeader header;
  header.collective = call.collective;
  header.algorithm = call.algorithm;
  header.type = call.type;
  header.op = call.op;
  header.root = static_cast<std::uint16_t>(call.root);
  header.sequence = sequence_++;
  const std::size_t asked = call.segment_bytes != 0 ? call.segment_bytes : options_.segment_bytes;
  header.segment_units = static_cast<std::uint32_t>(
      plans_->segment_bytes(executor, call.count, call.type, asked) / kSegmentAlignment);
  header.count_and_plan = call.count << 16 | (call.servers ? hash(*call.servers) : 0);
  operation.executor = &executor;
  operation.binding = {call.in, call.out, header, &operation.update};
  (head_ == nullptr ? head_ : tail_->next) = &operation;
  tail_ = &operation;
}

void Engine::run(const Call& call, Operation& operation) {
  std::unique_lock lock(mutex_);
  push(call, operation);
  if (has_driver_ || head_ != &operation) {
    operation.deadline = Clock::now() + options_.timeout;
    lock.unlock();
    wait(operation, kNever);
    return;
  }
  has_driver_ = true;
  lock.unlock();
  drive(&operation, kNever, Until::kDone);
  if (operation.failure) throw Error(*operation.failure);
}

void Engine::issue(const Call& call, const std::shared_ptr<Operation>& operation) {
  operation->deadline = Clock::now() + options_.timeout;
  const std::lock_guard lock(mutex_);
  push(call, *operation);
  operation->self = operation;
  changed_.notify_all();
}

void Engine::wait(Operation& operation, Deadline limit) {
  std::unique_lock lock(mutex_);
  while (!operation.is_done) {
    if (!has_driver_) {
      has_driver_ = true;
      lock.unlock();
      drive(&operation, limit, Until::kDone);
      lock.lock();
    } else {
      ++waiters_;
      changed_.wait_until(lock, std::min(limit, Clock::now() + options_.timeout));
      --waiters_;
      changed_.notify_all();  // the progress thread steps aside for waiters only
    }
    if (!operation.is_done && Clock::now() >= limit) {
      throw Error(ErrorCode::kDeadline, kNoPeer,
                  fmt::format("rank {} ({}): {} is still in flight at the deadline given to wait()",
                              rank_, host_, describe(operation.binding.header)));
    }
  }
  if (operation.failure) throw Error(*operation.failure);
}

bool Engine::progress() {
  std::unique_lock lock(mutex_);
  if (head_ == nullptr || has_driver_) return head_ != nullptr;
  has_driver_ = true;
  lock.unlock();
  drive(nullptr, kNever, Until::kBlocked);
  lock.lock();
  return head_ != nullptr;
}

// --- driving: with the role, which is given back at the end ---

void Engine::drive(const Operation* awaited, Deadline limit, Until until) {
  Operation* operation = nullptr;
  try {
    {
      const std::lock_guard lock(mutex_);
      operation = head_;
    }
    while (operation != nullptr) {
      if (!operation->is_started) {
        operation->executor->start(operation->binding);
        operation->is_started = true;
        idle_rounds_ = 0;
      }
      if (operation->executor->advance()) {
        operation = retire(*operation, awaited);
        continue;
      }
      transport_->progress();
      if (has_moved(*operation)) continue;
      if (until == Until::kBlocked || (until == Until::kWanted && is_wanted())) break;
      if (!pause(*operation, limit)) break;
    }
    if (operation != nullptr || awaited == nullptr) release_role();
  } catch (...) {
    fail(explain(operation, std::current_exception()));
  }
}

bool Engine::has_moved(const Operation& operation) {
  const std::uint64_t moves = operation.executor->moves();
  if (moves == moves_) return false;
  moves_ = moves;
  idle_rounds_ = 0;
  policy_->moved();
  return true;
}

// Ends the operation; the next one, or null where the role was given back as the awaited one is
// done.
Operation* Engine::retire(Operation& operation, const Operation* awaited) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Operation> keep = std::move(operation.self);
  head_ = operation.next;
  ++finished_;
  operation.is_done = true;
  changed_.notify_all();
  if (&operation != awaited) return head_;
  has_driver_ = false;
  return nullptr;
}

void Engine::release_role() {
  const std::lock_guard lock(mutex_);
  has_driver_ = false;
  changed_.notify_all();
}

// False once `limit` has passed; throws where the operation's own deadline has.
bool Engine::pause(Operation& operation, Deadline limit) {
  if (operation.deadline == Deadline{}) operation.deadline = Clock::now() + options_.timeout;
  if (++idle_rounds_ > kRoundsBeforeLook) operation.executor->check_arrivals();
  const Deadline compare =
      operation.has_compared ? kNever : operation.deadline - options_.timeout + kCompareAfter;
  const Deadline until = std::min({operation.deadline, limit, compare});
  if (policy_->pause(*transport_, *store_, until)) return true;
  if (until == compare) {
    compare_calls(operation);
    return true;
  }
  if (until == operation.deadline) throw timed_out(operation);
  return false;
}

// The progress thread.
void Engine::serve() {
  std::unique_lock lock(mutex_);
  while (!is_closing_) {
    if (head_ == nullptr || has_driver_ || waiters_ > 0) {
      changed_.wait(lock);
      continue;
    }
    has_driver_ = true;
    lock.unlock();
    drive(nullptr, kNever, Until::kWanted);
    lock.lock();
  }
}

bool Engine::is_wanted() const { return waiters_.load(std::memory_order_relaxed) > 0; }

// --- the end ---

void Engine::close() noexcept {
  if (is_closed_) return;
  is_closed_ = true;
  try {
    progress();
    abort_what_is_left();
  } catch (...) {
    // Whatever is wrong now has nobody left to hear it.
  }
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  leave();
  transport_.reset();
}

void Engine::leave() noexcept {
  try {
    store_->leave();
  } catch (...) {
    // The store is gone already.
  }
}

CommunicatorStatistics Engine::statistics() {
  std::unique_lock lock(mutex_);
  ++waiters_;
  changed_.wait(lock, [this] { return !has_driver_; });
  --waiters_;
  CommunicatorStatistics sum;
  for (const Channel* channel : channels_) {
    if (channel == nullptr) continue;
    sum.payload_bytes_sent += channel->statistics().bytes_sent;
    sum.payload_bytes_received += channel->statistics().bytes_received;
  }
  sum.header_bytes_sent = plans_->header_bytes_sent();
  sum.payload_bytes_sent -= sum.header_bytes_sent;
  sum.payload_bytes_received -= plans_->header_bytes_received();
  sum.operations = finished_;
  changed_.notify_all();
  return sum;
}

}  // namespace kolo
