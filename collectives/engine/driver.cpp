// The driver's loop, from taking the queue's head to giving the role back.
//
// A round advances what runs as far as possible: the collective at the head of the queue, or the
// first message of every direction. A round in which nothing moved ends in a pause.
#include <algorithm>
#include <thread>
#include <utility>

#include "collectives/engine/engine.h"
#include "collectives/engine/wait_graph.h"

namespace kolo::inline v0 {
namespace {

// After this many blocked rounds, check headers that have arrived but are not needed yet.
constexpr std::uint64_t kRoundsBeforeLook = 64;

// Interval at which the progress thread checks whether graph replays wait for a lost rank.
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);

// A thread that waits notices a deadline at most this late. A larger delay means it was not
// waiting.
constexpr auto kAway = std::chrono::milliseconds(500);

constexpr auto kNever = Deadline::max();

bool is_message(const Operation& operation) { return operation.direction != kNoDirection; }

}  // namespace

void Engine::drive(const Operation* awaited, Deadline limit, Until until) {
  driver_ = std::this_thread::get_id();
  try {
    if (event_descriptor_ != nullptr) [[unlikely]]
      event_descriptor_->disarm();
    Operation* head = first_in_queue();
    has_ended_one_ = false;
    while (head != nullptr || is_following(awaited, until)) {
      failure_->check();
      if (until == Until::kOneEnded && has_ended_one_) break;
      has_moved_ = false;
      if (streams_ != nullptr && follow_streams(awaited)) break;
      if (head == nullptr) head = first_in_queue();
      const bool has_messages = head != nullptr && is_message(*head);
      if (head != nullptr) {
        Operation* const next =
            has_messages ? advance_messages(*head, awaited) : advance(*head, awaited);
        const bool is_next_due = next == nullptr || (next != head && !has_messages);
        head = next;
        if (is_next_due) continue;
      }
      transport_->progress();
      if (has_moved_) {
        idle_rounds_ = 0;
        policy_->moved();
        continue;
      }
      if (until == Until::kWanted && is_wanted()) break;
      const auto running = has_messages
                               ? std::span<Operation* const>(running_)
                               : std::span<Operation* const>(&head, head == nullptr ? 0 : 1);
      const bool goes_on = until != Until::kBlocked;
      if (!look_after(running, limit, goes_on) || !goes_on) break;
    }
    if (is_driving()) release_role();
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    fail(explain(at_hand_, thrown));
    if (thrown == nullptr) throw;  // pthread_cancel() unwinds the thread's stack
  }
  if (closer_ != std::this_thread::get_id()) [[likely]]
    return;
  closer_ = std::thread::id();
  finish_closing();
}

Operation* Engine::first_in_queue() {
  const std::lock_guard lock(mutex_);
  return head_;
}

void Engine::start(const Operation& operation) {
  const Binding& binding = operation.binding;
  Executor& executor = *operation.executor;
  const bool is_started_again =
      operation.is_cached_call &&
      executor.start_again(binding.header, binding.header.sequence, binding.in, binding.out);
  if (!is_started_again) executor.start(binding);
}

// Advances it as far as possible; true once it is done.
bool Engine::run_at_hand(Operation& operation) {
  at_hand_ = &operation;
  if (streams_ != nullptr) {
    if (operation.on_stream != nullptr) return give(operation);
    if (!operation.is_started && streams_->holds_up(*operation.executor)) return false;
  }
  if (!operation.is_started) {
    start(operation);
    operation.is_started = true;
    idle_rounds_ = 0;
    policy_->moved();  // each operation's waits start anew, even if the last one moved nothing
  }
  const std::uint64_t moves = operation.executor->moves();
  const bool is_done = operation.executor->advance();
  failure_->check();  // a callback of the caller may have aborted
  if (is_done || operation.executor->moves() != moves) has_moved_ = true;
  return is_done;
}

// Advances a collective. Returns the head of the queue afterwards, as retire() does.
Operation* Engine::advance(Operation& operation, const Operation* awaited) {
  if (!run_at_hand(operation)) return &operation;
  if (operation.has_published_wait) {
    asked_calls_.clear();
    publish_awaited_peers({});
  }
  if (operation.on_stream != nullptr) return hand_over(operation, awaited);
  look_for_stray(*operation.executor, operation.binding.header);
  return retire(operation, awaited);
}

// One round of the messages at the head of the queue. Returns the head, as retire() does.
Operation* Engine::advance_messages(Operation& head, const Operation* awaited) {
  Operation* first = &head;
  admit_messages(head);
  for (std::size_t i = 0; i < running_.size();) {
    Operation& operation = *running_[i];
    if (!run_at_hand(operation)) {
      ++i;
      continue;
    }
    finish_message(i);
    if (operation.has_published_wait) publish_awaited_peers(running_);
    first = retire(operation, awaited);
    if (first == nullptr) break;
  }
  return first;
}

// Adds newly issued messages, up to the first collective.
void Engine::admit_messages(Operation& head) {
  Operation* next =
      last_seen_ == nullptr ? &head : last_seen_->next.load(std::memory_order_acquire);
  for (; next != nullptr && is_message(*next); next = next->next.load(std::memory_order_acquire)) {
    Operation*& last = last_messages_[next->direction];
    if (last == nullptr) {
      running_.push_back(next);
    } else {
      last->behind = next;
    }
    last = last_seen_ = next;
  }
}

// running_[index] is done: the next message of its direction takes its place.
void Engine::finish_message(std::size_t index) {
  Operation& done = *running_[index];
  if (done.behind != nullptr) {
    running_[index] = done.behind;
    return;
  }
  last_messages_[done.direction] = nullptr;
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
}

// Takes an operation out of the queue. Needs the lock and the driver's role.
void Engine::unlink(Operation& operation) {
  --(operation.direction == kNoDirection ? queued_collectives_
                                         : queued_messages_[operation.direction]);
  Operation* const next = operation.next.load(std::memory_order_relaxed);
  Operation* const previous = operation.previous;
  if (previous == nullptr) {
    head_ = next;
  } else {
    previous->next.store(next, std::memory_order_relaxed);
  }
  (next == nullptr ? tail_ : next->previous) = previous;
  if (last_seen_ == &operation) last_seen_ = previous;
}

// Takes a finished operation out of the queue. The caller must keep the result until the operation
// has ended. Needs the lock and the driver's role.
std::shared_ptr<Operation> Engine::take_out(Operation& operation) {
  unlink(operation);
  at_hand_ = nullptr;
  ++finished_;
  return std::move(operation.self);
}

// Ends the operation. Returns the head of the queue, or null if the operation is the awaited one:
// the role was then given back.
Operation* Engine::retire(Operation& operation, const Operation* awaited) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Operation> keep = take_out(operation);
  const bool is_awaited = &operation == awaited;
  if (is_awaited) give_up_role();
  end(operation, lock);
  return is_awaited ? nullptr : head_;
}

// Marks the operation as done, and runs its callbacks without the lock. Needs the lock, and has it
// again at the end. A blocking call's operation is gone once it is done. An operation with
// callbacks is asynchronous, and the caller of end() keeps it alive.
void Engine::end(Operation& operation, std::unique_lock<std::mutex>& lock) {
  const std::vector<WorkCallback> callbacks = std::exchange(operation.callbacks, {});
  const std::optional<Error> failure = callbacks.empty() ? std::nullopt : operation.failure;
  operation.is_done = has_ended_one_ = true;
  changed_.notify_all();
  if (callbacks.empty()) return;
  lock.unlock();
  const auto call_all = [&]() noexcept {
    for (const WorkCallback& callback : callbacks) callback(failure ? &*failure : nullptr);
  };
  call_all();
  lock.lock();
}

void Engine::release_role() {
  const std::lock_guard lock(mutex_);
  give_up_role();
  changed_.notify_all();
}

// Needs the lock. If other threads' operations remain, wakes the event loop to arm its descriptor.
void Engine::give_up_role() {
  has_driver_ = false;
  driver_ = std::thread::id();
  if (event_descriptor_ != nullptr && head_ != nullptr) event_descriptor_->ring();
}

// Wakes a sleeping driver for a message that another thread has just issued: messages run side by
// side, so the new one may be able to move now. Needs the lock.
void Engine::wake_for(const Operation& operation) {
  if (has_driver_ && is_message(operation) && !is_driving()) policy_->wake();
}

// After a round in which nothing moved: pauses, or only looks at the clock and the store if
// `pauses` is false. False once `limit` has passed. Throws if the deadline of one of `running` has
// passed, or if another rank has failed.
bool Engine::look_after(std::span<Operation* const> running, Deadline limit, bool pauses) {
  const bool looks = ++idle_rounds_ > kRoundsBeforeLook;
  Deadline until = limit;
  if (!asked_calls_.empty() && !running.empty()) read_peer_calls(running.front()->binding.header);
  for (Operation* operation : running) {
    if (operation->deadline == Deadline{}) operation->deadline = Clock::now() + operation->timeout;
    if (operation->next_wait_report == Deadline{}) {
      operation->next_wait_report = operation->deadline - operation->timeout + kPublishWaitsAfter;
    }
    until = std::min({until, operation->deadline, operation->next_wait_report});
    if (!looks) continue;
    if (operation->executor != nullptr && operation->is_started)
      operation->executor->check_arrivals();
    look_for_strays_before(*operation);
  }
  const auto due = streams_ == nullptr ? std::nullopt : streams_->next_due();
  if (due) until = std::min(until, due->deadline);
  if (pauses && streams_ != nullptr && streams_->has_unfinished()) {
    if (wait_beside_streams(until)) return true;
  } else if (pauses) {
    policy_->count_into(waits_for(running.empty() ? kNobody : awaited_peer(*running.front())));
    if (policy_->pause(*transport_, *store_, until)) return true;
  } else {
    // A caller that polls in a loop must not keep the core from the ranks it waits for.
    if (policy_->kind() != WaitKind::kSpin) std::this_thread::yield();
    if (policy_->is_in_time(*store_, until)) return true;
  }
  for (Operation* operation : running) {
    if (until == operation->next_wait_report) {
      const bool has_published_wait = std::exchange(operation->has_published_wait, true);
      publish_awaited_peers(running);
      if (!has_published_wait) compare_calls(*operation);
      operation->next_wait_report = Clock::now() + kPublishWaitsAfter;
      return true;
    }
    if (until == operation->deadline) {
      if (has_been_away(*operation)) return true;
      throw timed_out(*operation);
    }
  }
  if (due && until == due->deadline) throw timed_out(*due);
  return false;
}

// True if the deadline passed long ago: this rank computed or was stopped meanwhile, so no thread
// waited. The peers then get the full timeout again.
bool Engine::has_been_away(Operation& operation) {
  const auto now = Clock::now();
  if (now - operation.deadline < kAway) return false;
  operation.deadline = now + operation.timeout;
  operation.next_wait_report = now + kPublishWaitsAfter;
  return true;
}

// The counters for a wait for rank `awaited`.
WaitStatistics& Engine::waits_for(int awaited) {
  return awaited == kNobody ? waits_.back() : waits_[static_cast<std::size_t>(awaited)];
}

// The progress thread. A graph replay does not notify it, so it polls at an interval.
void Engine::serve() {
  std::unique_lock lock(mutex_);
  while (!is_closing_) {
    const bool has_nothing = head_ == nullptr && !has_given_;
    const bool looks = has_nothing && may_replay_ && !has_driver_ && waiters_ == 0;
    if (looks) {
      const bool is_quiet = changed_.wait_for(lock, kBetweenLooks) == std::cv_status::timeout;
      // Any change, with or without notification, is handled first.
      if (!is_quiet || is_closing_ || has_driver_ || waiters_ > 0 || !may_replay_) continue;
    } else if (has_nothing || has_driver_ || waiters_ > 0) {
      changed_.wait(lock);
      continue;
    }
    has_driver_ = true;
    lock.unlock();
    drive(nullptr, kNever, looks ? Until::kBlocked : Until::kWanted);
    lock.lock();
  }
}

bool Engine::is_wanted() const { return waiters_.load(std::memory_order_relaxed) > 0; }

}  // namespace kolo::inline v0
