// How an engine fails: what went wrong here, what the job says went wrong first, and the end of all
// that is in flight.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <thread>

#include "collectives/engine.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;

// How long an earlier cause may take to reach us before we post our own, which may be no more than
// its consequence.
constexpr auto kGrace = 200ms;

constexpr std::array kCodes = {ErrorCode::kPeerLost, ErrorCode::kDeadline,    ErrorCode::kMismatch,
                               ErrorCode::kAborted,  ErrorCode::kUnavailable, ErrorCode::kProtocol,
                               ErrorCode::kSystem};

// The store keeps one text; the code travels at its end: "rank 1 called ... [mismatch]".
std::string encode(const Error& error) {
  return fmt::format("{} [{}]", error.what(), to_string(error.code()));
}

// The rank that a text begins with: "rank 2 (node1, pid 17) is gone: ...".
int leading_rank(std::string_view text) {
  constexpr std::string_view kRank = "rank ";
  int rank = kNoPeer;
  if (text.starts_with(kRank)) {
    std::from_chars(text.data() + kRank.size(), text.data() + text.size(), rank);
  }
  return rank;
}

Error decode(std::string_view text) {
  for (const ErrorCode code : kCodes) {
    const std::string ending = fmt::format(" [{}]", to_string(code));
    if (!text.ends_with(ending)) continue;
    text.remove_suffix(ending.size());
    return {code, leading_rank(text), std::string(text)};
  }
  // Posted by the store's server, which sees ranks die.
  const bool is_gone = text.find(" is gone") != std::string_view::npos;
  return {is_gone ? ErrorCode::kPeerLost : ErrorCode::kAborted, leading_rank(text),
          std::string(text)};
}

std::string_view as_text(const CallHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

}  // namespace

Error Engine::timed_out(const Operation& operation) const {
  const Executor& executor = *operation.executor;
  const std::chrono::duration<double> timeout = options_.timeout;
  const CallHeader& header = operation.binding.header;
  return {ErrorCode::kDeadline, executor.awaited_peer(),
          fmt::format("rank {} ({}): {} ({}) timed out after {:.1f} s in {} #{}, {}; is rank {} "
                      "alive, and does it call the same operations?",
                      rank_, host_, executor.describe_wait(), transport_->name(), timeout.count(),
                      to_string(header.collective), header.sequence, executor.describe_place(),
                      executor.awaited_peer())};
}

// What was thrown while `operation` ran, in the words of this rank.
Error Engine::explain(const Operation* operation, const std::exception_ptr& exception) const {
  const std::string where =
      operation == nullptr
          ? ""
          : fmt::format(" (in {} #{}, {})", to_string(operation->binding.header.collective),
                        operation->binding.header.sequence, operation->executor->describe_place());
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::kPeerLost:
      case ErrorCode::kProtocol:
      case ErrorCode::kSystem:
      case ErrorCode::kUnavailable:
        return {error.code(), error.peer(), error.what() + where};
      case ErrorCode::kDeadline:
      case ErrorCode::kMismatch:
      case ErrorCode::kAborted:
        return error;
    }
    return error;
  } catch (const std::exception& error) {
    return {ErrorCode::kAborted, rank_,
            fmt::format("rank {} ({}): {}{}", rank_, host_, error.what(), where)};
  }
}

// The job's first cause, which is `own` where there is no earlier one.
Error Engine::settle(const Error& own) {
  try {
    if (own.code() == ErrorCode::kPeerLost || own.code() == ErrorCode::kSystem) {
      for (const auto end = Clock::now() + kGrace; Clock::now() < end && !store_->failure();) {
        std::this_thread::sleep_for(1ms);
      }
    }
    const std::string mine = encode(own);
    const auto earlier = store_->failure();
    const std::string first = earlier ? *earlier : store_->post_failure(mine);
    return first == mine ? own : decode(first);
  } catch (const std::exception&) {
    return own;  // the store is gone as well
  }
}

// Ends everything with the job's first cause. Needs the role, and gives it back.
void Engine::fail(const Error& own) {
  const Error cause = settle(own);
  transport_->quiesce();
  const std::lock_guard lock(mutex_);
  poison_ = cause;
  while (head_ != nullptr) {
    Operation& operation = *head_;
    const std::shared_ptr<Operation> keep = std::move(operation.self);
    head_ = operation.next;
    operation.failure = cause;
    operation.is_done = true;
  }
  has_driver_ = false;
  changed_.notify_all();
}

void Engine::abort(std::string_view reason) {
  const Error own(ErrorCode::kAborted, rank_,
                  fmt::format("rank {} ({}) aborted: {}", rank_, host_, reason));
  try {
    store_->post_failure(encode(own));
  } catch (const Error&) {
    // The store is gone, and the job with it: at least this rank shall end.
  }
  std::unique_lock lock(mutex_);
  if (poison_) return;
  // Whoever drives is woken by the store, and fails.
  ++waiters_;
  changed_.wait(lock, [this] { return !has_driver_ || poison_; });
  --waiters_;
  if (poison_) return;
  has_driver_ = true;
  lock.unlock();
  fail(own);
}

void Engine::abort_what_is_left() {
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (head_ == nullptr || poison_) return;
    reason = fmt::format("its communicator was destroyed with {} in flight",
                         describe(head_->binding.header));
  }
  abort(reason);
}

// Two ranks can wait for each other without a header on the way between them: both expect to
// receive. So who has waited for long writes into the store what it called, and reads what others
// wrote.
void Engine::compare_calls(Operation& operation) {
  operation.has_compared = true;
  const CallHeader& mine = operation.binding.header;
  store_->set(fmt::format("call/{}", rank_), as_text(mine));
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto said = store_->try_get(fmt::format("call/{}", peer));
    if (!said || said->size() != sizeof(CallHeader)) continue;
    CallHeader theirs;
    std::memcpy(&theirs, said->data(), sizeof(theirs));
    if (theirs.sequence == mine.sequence && theirs != mine) {
      throw Error(ErrorCode::kMismatch, peer, describe_mismatch(peer, theirs, rank_, mine));
    }
  }
}

}  // namespace kolo
