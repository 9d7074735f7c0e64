// Operations on the device's streams. They pass through the engine's queue until they are enqueued.
// After that they are watched beside the queue, so that later operations do not wait for the
// device.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "collectives/engine/engine.h"

namespace kolo::inline v0 {
namespace {

// A device does not notify the host when it is done, so a waiting thread polls: first without a
// pause, then at an interval.
constexpr std::uint64_t kRoundsWithoutPause = 2000;
constexpr auto kPause = std::chrono::microseconds(20);

}  // namespace

// Before ranks exchange their topology, which includes the devices.
void Engine::make_streams() {
  if (options_.device == nullptr) return;
  try {
    streams_ = std::make_unique<StreamQueue>(*options_.device, rank_);
  } catch (const Error& error) {
    throw Error(error.code(), rank_,
                fmt::format("rank {} ({}): its device: {}", rank_, host_, error.what()));
  }
}

// If any rank has a device, ranks without one must run the same schedules.
void Engine::join_devices() {
  const bool has_devices = std::ranges::any_of(
      placement_.devices, [](const std::string& device) { return !device.empty(); });
  if (!has_devices) return;
  bool is_one_with_host = true;
  for (Channel* const channel : channels_) {
    if (channel == nullptr || channel->stream() == nullptr) continue;
    is_one_with_host = channel->stream()->is_one_with_host();
  }
  plans_->suit_devices(is_one_with_host);
  if (streams_ != nullptr) streams_->meet(channels_);
}

// Throws if the call's buffers are in the wrong memory for its stream, or if it has none (see
// StreamQueue). Needs the lock.
void Engine::require_places(Call& call) {
  if (streams_ == nullptr) {
    throw std::invalid_argument(
        fmt::format("{}: the call is on a device's stream, but this rank's communicator has no "
                    "device: set CommunicatorOptions::device",
                    to_string(call.collective)));
  }
  streams_->require_places(call);
}

// The send goes first: a stream that waits to receive could not send meanwhile.
void Engine::exchange_on_stream(const checked_calls::Exchange& both) {
  Call send = both.send;
  Call receive = both.receive;
  if (both.is_copy) {
    look([&] {
      failure_->check();
      require_places(send);
      streams_->copy(send);
    });
    return;
  }
  const std::size_t held = streams_ == nullptr ? 0 : streams_->held_bytes();
  if (streams_ != nullptr && send.extents.in_bytes + kHeaderSegmentBytes > held) {
    throw std::invalid_argument(
        fmt::format("send_receive: {} bytes on a stream are more than the {} that may be in flight "
                    "before any are received, so ranks would wait for each other; use all_to_all",
                    send.extents.in_bytes, held));
  }
  Operation first;
  run(send, first);
  Operation second;
  run(receive, second);
}

// Enqueues as much as possible; true once the whole operation is in the stream.
bool Engine::give(Operation& operation) {
  const auto entered = streams_->enter();
  const std::uint64_t moves = streams_->moves();
  if (operation.deadline == Deadline{}) operation.deadline = Clock::now() + operation.timeout;
  if (!operation.is_started) {
    streams_->start(operation);
    operation.is_started = true;
    idle_rounds_ = 0;
    policy_->moved();
  }
  const bool is_given = streams_->advance(operation);
  if (is_given || streams_->moves() != moves) has_moved_ = true;
  return is_given;
}

// The operation is enqueued: a blocking call returns, a Work waits for the device. Returns the head
// of the queue, as retire() does.
Operation* Engine::hand_over(Operation& operation, const Operation* awaited) {
  last_done_ = operation.binding.header;
  {
    const std::lock_guard lock(mutex_);
    has_given_ = true;
    may_replay_ |= operation.is_captured;
    changed_.notify_all();
    if (operation.self != nullptr) {
      streams_->hand_over(operation, take_out(operation));
      return head_;
    }
  }
  streams_->hand_over(operation, nullptr);
  return retire(operation, awaited);
}

// True if driving goes on with an empty queue: for the awaited operation, or for all on streams.
bool Engine::is_following(const Operation* awaited, Until until) const {
  if (streams_ == nullptr) return false;
  if (awaited != nullptr) return is_driving();
  return streams_->has_unfinished() || (until == Until::kBlocked && streams_->has_captured());
}

// Ends operations that the device has finished. True if `awaited` is one of them; then this thread
// no longer has the driver role.
bool Engine::follow_streams(const Operation* awaited) {
  if (!streams_->has_unfinished()) return false;
  const std::uint64_t moves = streams_->moves();
  streams_->read_headers();
  if (streams_->moves() != moves) has_moved_ = true;
  std::shared_ptr<Operation> ended = streams_->take_over();
  for (; ended != nullptr; ended = streams_->take_over()) {
    has_moved_ = true;
    std::unique_lock lock(mutex_);
    has_given_ = streams_->has_unfinished();
    const bool is_awaited = ended.get() == awaited;
    if (is_awaited) {
      has_driver_ = false;
      driver_ = std::thread::id();
    }
    end(*ended, lock);
    if (is_awaited) return true;
  }
  if (!streams_->has_unfinished()) {
    const std::lock_guard lock(mutex_);
    has_given_ = false;
  }
  return false;
}

// False once `until` has passed.
bool Engine::wait_beside_streams(Deadline until) {
  if (idle_rounds_ > kRoundsWithoutPause) {
    std::this_thread::sleep_for(kPause);
  } else if (policy_->kind() != WaitKind::kSpin) {
    std::this_thread::yield();
  }
  return policy_->is_in_time(*store_, until);
}

int Engine::awaited_peer(const Operation& operation) const {
  const bool is_held_up = streams_ != nullptr && !operation.is_started;
  if (operation.on_stream != nullptr || is_held_up) return streams_->awaited_peer();
  return operation.executor->awaited_peer();
}

std::string Engine::describe_wait(const Operation& operation) const {
  const bool is_held_up = streams_ != nullptr && !operation.is_started;
  if (operation.on_stream != nullptr || is_held_up) return streams_->describe_wait();
  return operation.executor->describe_wait();
}

std::string Engine::describe_location(const Operation& operation) const {
  if (operation.on_stream != nullptr)
    return operation.on_stream->describe_location() + " on a stream";
  return operation.executor->describe_location();
}

Error Engine::timed_out(const StreamQueue::Pending& pending) const {
  const std::chrono::duration<double> timeout = pending.timeout;
  const std::string what = describe(*pending.header);
  const int late =
      pending.peer == kNobody ? streams_->peer_without_header(*pending.header) : pending.peer;
  if (late == kNobody) {
    return {ErrorCode::kDeadline, kNoPeer,
            fmt::format(
                "rank {} ({}): {} on a stream ({}) timed out after {:.1f} s: every rank has called "
                "it, but the device has not finished it; does other work block these streams?",
                rank_, host_, what, transport_->name(), timeout.count())};
  }
  return {ErrorCode::kDeadline, late,
          fmt::format("rank {} ({}): {} on a stream ({}) timed out after {:.1f} s: rank {} has not "
                      "called it; is rank {} alive, and does it call the same operations?",
                      rank_, host_, what, transport_->name(), timeout.count(), late, late)};
}

// Ends all operations on streams with `cause`. Needs the lock, and has it again at the end.
void Engine::fail_on_streams(const Error& cause, std::unique_lock<std::mutex>& lock) {
  has_given_ = may_replay_ = false;
  for (const std::shared_ptr<Operation>& operation : streams_->take_all()) {
    operation->failure = cause;
    end(*operation, lock);
  }
}

}  // namespace kolo::inline v0
