// Fast path of a repeated call (engine/call_cache.h): a small operation costs more time in the
// queue than for its bytes.
//
// If no earlier operation is in the queue and there is no driver, the caller's thread runs the
// operation under the engine's lock, without a queue entry and without the driver role. To other
// threads the operation looks issued and finished before they came. An asynchronous operation is
// advanced as far as possible before it enters the queue.
//
// The fast path ends when peers are late by some tens of polls (WaitPolicy::spin: 1 or 2
// microseconds in shared memory). Then the operation enters the queue as it is, and its caller
// drives it from there. The queue handles everything that needs a clock, a deadline, other threads
// or a failure.
#include <algorithm>
#include <utility>

#include "collectives/engine/engine.h"

namespace kolo::inline v0 {
namespace {

// Largest message in bytes. Other threads may wait for the lock while it is moved, some 10 us.
constexpr std::size_t kLongestUnderLock = 64 * 1024;

// Largest blocking collective: some 40 us, over tcp 200 us. Others would queue behind it anyway.
// For longer ones the cost of the queue is negligible.
constexpr std::size_t kLongestCollectiveUnderLock = 512 * 1024;

// A message that ends on the fast path does not advance messages of other directions in the queue.
// So one of this many takes the normal path, which advances all.
constexpr std::uint32_t kBesideOthers = 16;

// Messages that one wait finishes under the lock.
constexpr int kMostInRow = 16;

Binding binding_of(const CallHeader& header, const void* in, void* out) {
  Binding binding;
  binding.in = in;
  binding.out = out;
  binding.header = header;
  return binding;
}

std::size_t bytes_of(const CallHeader& header) {
  return header.count() * header.bytes_of_element();
}

CallKey key_of(const Call& call, int rank) {
  if (call.collective != Collective::kMessage)
    return {call.collective, call.type, call.op, call.root, call.count};
  const bool receives = call.root != rank;
  return CallKey::of_message(call.type, receives ? call.root : call.peer, receives, call.count);
}

}  // namespace

// Keeps a short call with default options for the fast path. Needs the lock.
void Engine::cache_call(const Call& call, const Operation& operation) {
  const bool has_usual_servers = call.servers == nullptr || is_cacheable(*call.servers);
  const bool is_default = call.reducer == nullptr && has_usual_servers && call.lengths.empty() &&
                          !call.has_own_lengths && call.segment_bytes == 0 && call.scale == 1 &&
                          call.timeout.count() == 0;
  const std::size_t longest =
      call.collective == Collective::kMessage ? kLongestUnderLock : kLongestCollectiveUnderLock;
  if (!is_default || operation.update || call.stream || recorder_ != nullptr ||
      call.count * call.element_bytes > longest) {
    return;
  }
  call_cache_.keep({key_of(call, rank_), operation.executor, operation.binding.header, call.extents,
                    operation.direction});
}

bool Engine::run_cached(CallKey key, const void* in, void* out) {
  std::unique_lock lock(mutex_);
  const CachedCall* known = call_cache_.find(key);
  if (known == nullptr || has_driver_ || failure_->is_known() || is_closing_ ||
      !known->extents.fit(in, out) || !is_apart_from_streams(in, out) ||
      !is_next(known->direction)) {
    return false;
  }
  if (head_ != nullptr && ++ran_beside_others_ % kBesideOthers == 0) return false;
  Executor& executor = *known->executor;
  const std::uint32_t sequence = next_sequence(known->direction);
  try {
    if (start_at_once(executor, known->header, sequence, in, out) || advance_soon(executor)) {
      look_for_stray(executor, known->header.with(sequence));
      ++finished_;
      return true;
    }
  } catch (...) {
    continue_in_queue(*known, sequence, in, out, std::current_exception(), lock);
    return true;
  }
  continue_in_queue(*known, sequence, in, out, nullptr, lock);
  return true;
}

// Continues a repeated call that has started, and has failed or must wait for long. A function of
// its own, so that the stack frame of run_cached() stays small.
[[gnu::noinline]] void Engine::continue_in_queue(const CachedCall& known, std::uint32_t sequence,
                                                 const void* in, void* out,
                                                 const std::exception_ptr& failure,
                                                 std::unique_lock<std::mutex>& lock) {
  Operation operation;
  operation.executor = known.executor;
  operation.binding = binding_of(known.header.with(sequence), in, out);
  operation.timeout = options_.timeout;
  operation.is_started = true;
  operation.direction = known.direction;
  finish_in_queue(operation, failure, lock);
}

// If no earlier operation is pending, the data is sent here. So a caller that waits for all of many
// messages finds most of them done; those need no operation object.
std::shared_ptr<Operation> Engine::issue_cached(const std::shared_ptr<Engine>& self, CallKey key,
                                                const void* in, void* out) {
  Engine& engine = *self;
  std::unique_lock lock(engine.mutex_);
  const CachedCall* known = engine.call_cache_.find(key);
  if (known == nullptr || engine.failure_->is_known() || engine.is_closing_ ||
      !known->extents.fit(in, out) || !engine.is_apart_from_streams(in, out)) {
    return nullptr;
  }
  Executor& executor = *known->executor;
  // Allocates before anything has started, so that a lack of memory leaves no half-done operation.
  if (engine.spare_ == nullptr) engine.spare_ = Operation::make();
  const bool is_first = bytes_of(known->header) <= kLongestUnderLock && !engine.has_driver_ &&
                        engine.is_next(known->direction);
  const std::uint32_t sequence = engine.next_sequence(known->direction);
  std::exception_ptr failure;
  if (is_first) {
    try {
      if (engine.start_at_once(executor, known->header, sequence, in, out)) {
        if (known->direction == kNoDirection)
          engine.look_for_stray(executor, known->header.with(sequence));
        ++engine.finished_;
        return Operation::done();
      }
    } catch (...) {
      failure = std::current_exception();
    }
  }
  std::shared_ptr<Operation> operation = std::move(engine.spare_);
  operation->engine = self;
  operation->executor = &executor;
  operation->direction = known->direction;
  operation->binding.in = in;
  operation->binding.out = out;
  operation->binding.header = known->header;
  operation->binding.header.set_sequence(sequence);
  operation->timeout = engine.options_.timeout;
  operation->is_started = is_first;
  operation->is_cached_call = true;
  engine.put_in_queue(operation);
  if (failure) engine.fail_in_queue(*operation, failure, lock);
  return operation;
}

// True if neither streams nor device memory need care, which the fast path cannot give. Enqueued
// operations must be watched, since their headers may come before this call's. Memory that the
// device's driver knows must be classified. Needs the lock.
bool Engine::is_apart_from_streams(const void* in, const void* out) const {
  if (streams_ == nullptr) [[likely]]
    return true;
  return !has_given_ && streams_->is_plain(in) && (out == in || streams_->is_plain(out));
}

// Finishes small messages at the head of the queue that have arrived, up to `operation` and a few
// beyond. So a caller that waits for many messages, one by one, rarely takes the role. True once
// `operation` has ended. Needs the lock, and there must be no driver. If an operation fails, the
// lock is released.
bool Engine::finish_at_head(Operation& operation, std::unique_lock<std::mutex>& lock) {
  for (int ended = 0; ended < kMostInRow; ++ended) {
    if (head_ == nullptr || failure_->is_known() || !may_end_under_lock(*head_)) break;
    Operation& head = *head_;
    admit_messages(head);
    try {
      if (!run_at_hand(head)) break;
    } catch (...) {
      fail_in_queue(head, std::current_exception(), lock);
      return true;
    }
    const auto place = std::ranges::find(running_, &head);
    finish_message(static_cast<std::size_t>(place - running_.begin()));
    const std::shared_ptr<Operation> keep = take_out(head);
    end(head, lock);
  }
  return operation.is_done;
}

// Small messages without callbacks or a published wait.
bool Engine::may_end_under_lock(const Operation& operation) {
  return operation.direction != kNoDirection && !operation.has_published_wait &&
         operation.callbacks.empty() && bytes_of(operation.binding.header) <= kLongestUnderLock;
}

// True if no queued operation must run before one of this direction.
bool Engine::is_next(std::size_t direction) const {
  if (head_ == nullptr) return true;
  return direction != kNoDirection && queued_collectives_ == 0 && queued_messages_[direction] == 0;
}

// `header` without its sequence. True once the operation is done; otherwise it has advanced as far
// as possible.
bool Engine::start_at_once(Executor& executor, const CallHeader& header, std::uint32_t sequence,
                           const void* in, void* out) {
  if (!executor.start_again(header, sequence, in, out))
    executor.start(binding_of(header.with(sequence), in, out));
  idle_rounds_ = 0;
  policy_->moved();
  return executor.advance();
}

std::uint32_t Engine::next_sequence(std::size_t direction) {
  return direction == kNoDirection ? sequence_++ : messages_[direction]++;
}

// Spins for a short time. False if the operation must wait longer.
bool Engine::advance_soon(Executor& executor) {
  std::uint64_t moves = 0;
  do {
    if (executor.moves() != moves) policy_->moved();
    moves = executor.moves();
    transport_->progress();
    policy_->count_into(waits_for(executor.awaited_peer()));
    if (!policy_->spin()) return false;
  } while (!executor.advance());
  return true;
}

// Puts a started operation into the queue and drives it to its end. If `failure` (the exception
// thrown so far) is set, the operation fails instead. Throws the operation's failure. Needs the
// lock, and releases it.
void Engine::finish_in_queue(Operation& operation, const std::exception_ptr& failure,
                             std::unique_lock<std::mutex>& lock) {
  link(operation);
  if (failure) {
    fail_in_queue(operation, failure, lock);
  } else {
    has_driver_ = true;
    lock.unlock();
    drive(&operation, Deadline::max(), Until::kDone);
  }
  if (operation.failure) throw Error(*operation.failure);
}

// Fails `operation` with `failure`, and with it all other queued operations. The operation is in
// the queue, and there is no driver. Needs the lock, and releases it.
void Engine::fail_in_queue(Operation& operation, const std::exception_ptr& failure,
                           std::unique_lock<std::mutex>& lock) {
  has_driver_ = true;
  lock.unlock();
  driver_ = std::this_thread::get_id();
  at_hand_ = &operation;
  fail(explain(at_hand_, failure));
}

}  // namespace kolo::inline v0
