// Failures of an engine: explains this rank's error, settles the job's first cause, and ends all
// operations in flight.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include "collectives/engine/engine.h"
#include "collectives/engine/failure_text.h"
#include "collectives/engine/missing_connections.h"
#include "collectives/engine/wait_graph.h"

namespace kolo::inline v0 {
namespace {

using namespace std::chrono_literals;

// How long to wait for an earlier cause before posting our own, which may be only its consequence.
constexpr auto kGrace = 200ms;

// Time for the store to answer before it counts as silent.
constexpr auto kToBeAnswered = 500ms;

// Key of a rank's reason, if an exception ended it.
std::string exception_key(int rank) { return fmt::format("exception/{}", rank); }

// Odd directions receive, see Engine::direction_of.
bool receives_message(const Operation& operation) {
  return operation.direction != kNoDirection && operation.direction % 2 == 1;
}

std::string seconds(std::chrono::milliseconds timeout) {
  if (timeout < 100ms) return fmt::format("{} ms", timeout.count());
  return fmt::format("{:.1f} s", std::chrono::duration<double>(timeout).count());
}

std::string_view as_text(const CallHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

}  // namespace

// A cycle of receives: `peer` and the ranks after it, each of which waits to receive a message from
// the next, and the last one from this rank. Empty if there is no such cycle.
std::vector<int> Engine::receive_cycle(int peer, Deadline until) const {
  std::vector<std::vector<int>> ways = {{peer}};
  std::vector<int> asked = {peer};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const std::vector<int> way = ways[i];
    const auto said = fetch_wait_edges(*store_, way.back(), until);
    for (const auto& [next, is_to_send] : wait_edges_from(said.value_or(""), size_)) {
      if (is_to_send && next == rank_) return way;
      if (!is_to_send || std::ranges::find(asked, next) != asked.end()) continue;
      asked.push_back(next);
      ways.push_back(way);
      ways.back().push_back(next);
    }
  }
  return {};
}

// Advice for a timeout of `operation`, which rank `last` holds up. If the store is silent, the wait
// graph is unknown, and the store's own process may be the cause. Receives that face each other are
// an error only after the timeout: a thread may still issue the send.
std::string Engine::diagnose_timeout(const Operation& operation, int last, Deadline until) const {
  const auto circle = receives_message(operation) ? receive_cycle(last, until) : std::vector<int>();
  if (circle.empty()) {
    const std::string silence = store_->silence();
    return fmt::format("is rank {} alive, and does it call the same operations?{}", last,
                       silence.empty() ? "" : " Note that " + silence);
  }
  std::string text = fmt::format("rank {} itself waits to receive from", last);
  for (std::size_t i = 1; i < circle.size(); ++i)
    text += fmt::format(" rank {}, rank {} from", circle[i], circle[i]);
  return text + fmt::format(" rank {}: which of them is to send first?", rank_);
}

Error Engine::timed_out(const Operation& operation) const {
  const CallHeader& header = operation.binding.header;
  const int awaited = awaited_peer(operation);
  const Deadline until = wait_graph_deadline(*store_);
  int last = find_stalled_rank(*store_, rank_, size_, awaited, until);
  std::string advice = diagnose_timeout(operation, last, until);
  const bool is_in_cycle = last == awaited && awaited != kNobody && !receives_message(operation);
  const auto facing = is_in_cycle ? find_facing_pair(*store_, rank_, size_, awaited, until)
                                  : std::optional<std::pair<int, int>>();
  if (facing) {
    if (rank_ != facing->first && rank_ != facing->second) last = facing->first;
    advice = fmt::format("ranks {} and {} wait for each other: is the path between them open?",
                         facing->first, facing->second);
  }
  std::string channel;
  std::string_view transport = transport_->name();
  if (awaited != kNobody) {
    transport = transport_->name_to(awaited);
    const Channel& to = *channels_[static_cast<std::size_t>(awaited)];
    channel = to.why_unconnected();
    if (channel.empty()) channel = to.under_way();
  }
  return with_missing_connections(
      {ErrorCode::kDeadline, last,
       fmt::format("rank {} ({}): {} ({}) timed out after {} in {} #{}, {}; {}{}{}{}", rank_, host_,
                   describe_wait(operation), transport, seconds(operation.timeout),
                   to_string(header.collective), header.sequence, describe_location(operation),
                   wait_chain_text(awaited, last), channel, channel.empty() ? "" : "; ", advice)});
}

Error Engine::with_missing_connections(const Error& error) const {
  return {error.code(), error.peer(),
          error.what() + find_missing_connections(*store_, rank_, channels_, error)};
}

// An error of a rank alone names the rank, and what it began.
Error Engine::at_start(const Error& error) const {
  switch (error.code()) {
    case ErrorCode::kSystem:
    case ErrorCode::kOutOfMemory:
      return {error.code(), error.peer(), by_rank(rank_, error.what())};
    case ErrorCode::kUnavailable:
      return {error.code(), error.peer(),
              fmt::format("{} (making the communicator '{}')", by_rank(rank_, error.what()),
                          options_.name)};
    default:
      return error;
  }
}

Error Engine::out_of_memory(const std::string& where) const {
  return {ErrorCode::kOutOfMemory, rank_,
          fmt::format("rank {} ({}): out of memory{}: free memory, or send less at a time", rank_,
                      host_, where)};
}

// Makes this rank's error of an exception that was thrown while `operation` ran.
Error Engine::explain(const Operation* operation, const std::exception_ptr& exception) const {
  const auto where = [&] {
    return operation == nullptr
               ? ""
               : fmt::format(" (in {} #{}, {})", to_string(operation->binding.header.collective),
                             operation->binding.header.sequence, describe_location(*operation));
  };
  if (exception == nullptr) {
    return {ErrorCode::kAborted, rank_,
            fmt::format("rank {} ({}): the calling thread was cancelled{}", rank_, host_, where())};
  }
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    for (const Operation* message : running_) {
      if (message->executor->awaited_peer() == error.peer()) operation = message;
    }
    switch (error.code()) {
      case ErrorCode::kPeerLost:
        return with_missing_connections({error.code(), error.peer(), error.what() + where()});
      case ErrorCode::kProtocol:
        return {error.code(), error.peer(), error.what() + where()};
      case ErrorCode::kSystem:
      case ErrorCode::kOutOfMemory:
      case ErrorCode::kUnavailable:  // other ranks read the text, and have such devices too
        return {error.code(), error.peer(), by_rank(rank_, error.what()) + where()};
      case ErrorCode::kDeadline:
      case ErrorCode::kMismatch:
      case ErrorCode::kAborted:
        return error;
    }
    return error;
  } catch (const std::bad_alloc&) {
    return out_of_memory(where());
  } catch (const std::length_error&) {  // of a container that no memory could hold
    return out_of_memory(where());
  } catch (const std::exception& error) {
    return {ErrorCode::kAborted, rank_,
            fmt::format("rank {} ({}): {}{}", rank_, host_, error.what(), where())};
  } catch (...) {  // thrown by an update
    return {ErrorCode::kAborted, rank_,
            fmt::format("rank {} ({}): an exception was thrown that is not a std::exception{}",
                        rank_, host_, where())};
  }
}

// Translates a group's rank to the job's, since the failure concerns the whole job.
Error Engine::with_group_ranks(const Error& error) const {
  if (members_.empty()) return error;
  const bool is_member = error.peer() >= 0 && error.peer() < size_;
  return {error.code(), is_member ? job_rank(error.peer()) : error.peer(),
          fmt::format("{} (in a group, whose ranks 0 to {} are the job's ranks {})", error.what(),
                      size_ - 1, fmt::join(members_, ", "))};
}

// Looks for a better cause than `own`, which no rank has posted: a silent store's rank is the
// suspect, whatever rank this one waits for. `peer` is the lost one, by its number in this
// communicator; it may have left a reason.
Error Engine::find_cause(const Error& own, int peer) {
  std::shared_ptr<const Store::Answer> answer;
  if (own.code() == ErrorCode::kPeerLost && peer >= 0) {
    answer = store_->ask(exception_key(peer));
    wait_for_answers(*store_, {&answer, 1}, Clock::now() + kToBeAnswered);
  }
  if (const std::string suspicion = store_->suspicion(); !suspicion.empty()) {
    const Error suspect = failure_from(suspicion);
    if (suspect.peer() != job_rank(rank_))
      return {suspect.code(), suspect.peer(), fmt::format("{}; {}", suspicion, own.what())};
  }
  if (answer != nullptr && answer->has_come && answer->value)
    return {own.code(), own.peer(),
            fmt::format("rank {} {}; {}", peer, *answer->value, own.what())};
  const std::string silence = own.code() == ErrorCode::kPeerLost ? store_->silence() : "";
  if (silence.empty()) return own;
  return {own.code(), own.peer(), fmt::format("{}. Note that {}", own.what(), silence)};
}

// For peers that still expect something from this rank. No failure: all ranks may leave like this.
void Engine::note_exception() noexcept {
  try {
    store_->note(exception_key(rank_),
                 fmt::format("({}) has left by an exception: see its last output", host_));
  } catch (...) {
    // The job has failed, or the store is gone.
  }
}

// Returns the job's first cause: an earlier one, or `own`.
Error Engine::settle(Error own) {
  if (failure_->is_known()) return failure_->cause();
  const int peer = own.peer() < size_ ? own.peer() : kNoPeer;
  own = with_group_ranks(own);
  try {
    const bool may_follow = own.code() == ErrorCode::kPeerLost || own.code() == ErrorCode::kSystem;
    if (may_follow) {
      for (const auto end = Clock::now() + kGrace; Clock::now() < end && !store_->failure();) {
        std::this_thread::sleep_for(1ms);
      }
    }
    const bool is_loss = own.code() == ErrorCode::kPeerLost || own.code() == ErrorCode::kDeadline;
    if (is_loss && !store_->failure()) own = find_cause(own, peer);
    const auto earlier = store_->failure();
    const std::string mine = to_text(own);
    const std::string first = earlier ? *earlier : store_->post_failure(mine);
    return failure_->learn(first == mine ? own : failure_from(first));
  } catch (const std::exception&) {
    return failure_->learn(own);  // the store is gone as well
  }
}

// Ends all operations with the job's first cause. Needs the role, and gives it back.
void Engine::fail(const Error& own) {
  const Error cause = settle(own);
  transport_->quiesce();
  std::unique_lock lock(mutex_);
  is_poisoned_ = true;
  at_hand_ = last_seen_ = nullptr;
  running_.clear();
  asked_calls_.clear();
  while (head_ != nullptr) {
    Operation& operation = *head_;
    const std::shared_ptr<Operation> keep = std::move(operation.self);
    unlink(operation);
    operation.failure = cause;
    end(operation, lock);
  }
  if (streams_ != nullptr) fail_on_streams(cause, lock);
  has_driver_ = false;
  driver_ = std::thread::id();
  changed_.notify_all();
}

// Detects a stray call header. A rank that only sends, such as the root of a broadcast, reads no
// header, so it would not notice that a peer called something else. After each operation one
// channel is checked: unread data there must belong to a later operation. A channel that the
// operation received on needs no check.
void Engine::look_for_stray(const Executor& executor, const CallHeader& done) {
  if (done.collective == Collective::kMessage) return;
  last_done_ = done;
  if (++next_looked_at_ == channels_.size()) next_looked_at_ = 0;
  Channel* const channel = channels_[next_looked_at_];
  if (channel != nullptr && !executor.receives_on(*channel)) check_stray(*channel, done);
}

// The same for a blocked operation, on all channels that it does not receive on: no data of this or
// an earlier operation may be unread there.
void Engine::look_for_strays_before(const Operation& blocked) {
  const CallHeader& mine = blocked.binding.header;
  if (mine.collective == Collective::kMessage) return;
  for (Channel* channel : channels_) {
    if (channel == nullptr) continue;
    if (blocked.executor != nullptr && blocked.executor->receives_on(*channel)) continue;
    check_stray(*channel, mine);
  }
}

void Engine::check_stray(Channel& channel, const CallHeader& done) const {
  if (!channel.is_connected()) return;  // it has no data, and view() would connect it
  // Unread data may belong to an earlier operation on a stream, or to the stream itself.
  if (streams_ && (streams_->is_one_with_host() || streams_->is_expecting(channel))) return;
  const std::byte* opening = nullptr;
  try {
    opening = channel.view(kHeaderSegmentBytes);
  } catch (const Error&) {
    return;  // a peer ends only after it has sent all that this rank needs
  }
  if (opening == nullptr) return;
  CallHeader theirs;
  std::memcpy(&theirs, opening, sizeof(theirs));
  const bool is_known = theirs.magic == done.magic;
  if (!is_known || theirs.collective == Collective::kMessage) return;  // its reader reports it
  // Sequence numbers wrap, after days of small operations.
  const auto later = static_cast<std::int32_t>(theirs.sequence - done.sequence);
  if (later > 0) return;
  throw Error(ErrorCode::kMismatch, channel.peer(),
              describe_mismatch(channel.peer(), theirs, rank_, done));
}

// A thread that waits inside an update or a callback would wait for itself.
void Engine::require_not_driving(std::string_view what) const {
  if (!is_driving()) return;
  throw std::invalid_argument(
      fmt::format("{} inside an update or a callback would wait for itself; issue an asynchronous "
                  "operation instead",
                  what));
}

void Engine::abort(std::string_view reason) {
  end_job(
      {ErrorCode::kAborted, rank_, fmt::format("rank {} ({}) aborted: {}", rank_, host_, reason)});
}

void Engine::abort(ErrorCode code, int peer, std::string_view reason) {
  end_job({code, peer, fmt::format("rank {} ({}): {}", rank_, host_, reason)});
}

void Engine::stop(std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    changed_.notify_all();
    if (head_ == nullptr || is_poisoned_) return;
  }
  abort(reason);
}

void Engine::end_job(const Error& own) {
  const Error cause = settle(own);
  if (is_driving()) return;  // in an update or a callback: its caller ends everything
  std::unique_lock lock(mutex_);
  if (is_poisoned_) return;
  // The store wakes the driver, which then fails.
  ++waiters_;
  changed_.wait(lock, [this] { return !has_driver_ || is_poisoned_; });
  --waiters_;
  if (is_poisoned_) return;
  has_driver_ = true;
  lock.unlock();
  fail(cause);
}

std::optional<Error> Engine::failure() {
  if (failure_->is_known()) return failure_->cause();
  const auto said = store_->failure();
  return said ? std::optional(failure_->learn(failure_from(*said))) : std::nullopt;
}

// The driver ends all that is in flight; this call does not wait for it.
void Engine::fail_with_job() {
  std::unique_lock lock(mutex_);
  if (!has_driver_ && !is_poisoned_ && !is_closing_) {
    has_driver_ = true;
    lock.unlock();
    fail(failure_->cause());
  }
  throw failure_->cause();
}

void Engine::abort_what_is_left() {
  std::string what;
  bool may_be_at_work = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_poisoned_) return;
    if (head_ != nullptr) what = describe(head_->binding.header);
    may_be_at_work = head_ == nullptr && has_given_;
  }
  if (may_be_at_work) {
    look([&] {
      const CallHeader* const header = streams_->first_at_work();
      if (header != nullptr && !is_poisoned_) what = describe(*header) + " on a stream";
    });
  }
  if (!what.empty()) {
    const bool is_unwinding = std::uncaught_exceptions() > exceptions_;
    abort(fmt::format("its communicator was destroyed {}with {} in flight",
                      is_unwinding ? "by an exception " : "", what));
  }
}

// Publishes the ranks that the long waits of `running` wait for.
void Engine::publish_awaited_peers(std::span<Operation* const> running) {
  std::vector<WaitEdge> awaited;
  for (const Operation* operation : running) {
    if (!operation->has_published_wait) continue;
    awaited.push_back({awaited_peer(*operation), receives_message(*operation)});
  }
  publish_wait_edges(*store_, rank_, awaited, channels_);
}

// Two ranks that both expect to receive wait for each other without exchanging a header. So a rank
// that has waited long writes its current and its previous call to the store, and reads those of
// its peers. The answers are read when they arrive: a store that hangs blocks no rank.
void Engine::compare_calls(const Operation& operation) {
  const CallHeader& mine = operation.binding.header;
  if (mine.collective == Collective::kMessage)
    return;  // numbered per pair of ranks: no common order to compare
  std::string calls(as_text(mine));
  if (last_done_.sequence + 1 == mine.sequence) calls += as_text(last_done_);
  store_->note(fmt::format("call/{}", rank_), calls);
  asked_calls_.clear();
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    asked_calls_.push_back({peer, store_->ask(fmt::format("call/{}", peer))});
    asked_calls_.push_back({peer, store_->ask(group_key(peer)), true});
  }
}

// Compares the answers that have arrived since.
void Engine::read_peer_calls(const CallHeader& mine) {
  if (mine.collective == Collective::kMessage) return asked_calls_.clear();
  if (const auto failure = store_->failure()) throw Error(ErrorCode::kAborted, kNoPeer, *failure);
  std::erase_if(asked_calls_, [&](const AskedCall& asked) {
    if (!asked.answer->has_come) return false;
    const std::string said = asked.answer->value.value_or("");
    if (asked.is_about_group) {
      compare_with_group(mine, asked.peer, said);
      return true;
    }
    compare(mine, asked.peer, said);
    if (last_done_.sequence + 1 == mine.sequence) compare(last_done_, asked.peer, said);
    return true;
  });
}

// Compares `mine` with the call of the same number at a peer.
void Engine::compare(const CallHeader& mine, int peer, std::string_view said) const {
  for (; said.size() >= sizeof(CallHeader); said.remove_prefix(sizeof(CallHeader))) {
    CallHeader theirs;
    std::memcpy(&theirs, said.data(), sizeof(theirs));
    if (theirs.sequence != mine.sequence || theirs == mine) continue;
    throw Error(ErrorCode::kMismatch, peer, describe_mismatch(peer, theirs, rank_, mine));
  }
}

}  // namespace kolo::inline v0
