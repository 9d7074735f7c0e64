// Progress without blocking, and the descriptor by which a program's event loop drives it.
#include <algorithm>

#include "collectives/engine/engine.h"
#include "transports/base/check.h"

namespace kolo::inline v0 {

namespace {

constexpr auto kNever = Deadline::max();

// A device does not notify the host, so the event loop polls it this often.
constexpr std::chrono::milliseconds kBetweenLooksAtDevice{1};

}  // namespace

bool Engine::progress() {
  std::unique_lock lock(mutex_);
  const bool has_nothing = head_ == nullptr && !has_given_ && !may_replay_;
  if (has_nothing && event_descriptor_ != nullptr) return look_idle(lock);
  if (has_nothing || has_driver_) return head_ != nullptr || has_given_;
  has_driver_ = true;
  lock.unlock();
  drive(nullptr, kNever, Until::kBlocked);
  lock.lock();
  if (event_descriptor_ != nullptr) arm_event_descriptor(lock);
  return head_ != nullptr || has_given_;
}

int Engine::descriptor() {
  check(!options_.progress_thread,
        "descriptor(): this communicator has a progress thread; for an event loop, make it without "
        "CommunicatorOptions::progress_thread");
  require_not_driving("descriptor()");
  int descriptor = -1;
  look([&] {
    if (event_descriptor_ == nullptr) {
      event_descriptor_ = std::make_unique<EventDescriptor>(*transport_, *store_);
      event_descriptor_->ring();  // for what is in flight already
    }
    descriptor = event_descriptor_->descriptor();
  });
  return descriptor;
}

// progress() of an idle communicator: only the job's failure can be new.
bool Engine::look_idle(std::unique_lock<std::mutex>& lock) {
  if (!has_driver_) event_descriptor_->rest();
  lock.unlock();
  if (const auto known = failure()) throw *known;
  return false;
}

// Arms the descriptor for the operations in flight, if there are any. If another thread drives, it
// rings when it stops.
void Engine::arm_event_descriptor(std::unique_lock<std::mutex>& lock) {
  if (has_driver_) return;
  if (head_ == nullptr && !has_given_) return event_descriptor_->rest();
  has_driver_ = true;
  lock.unlock();
  try {
    event_descriptor_->arm(next_look());
  } catch (const Error&) {
    event_descriptor_->ring();  // the next progress() meets the error, and reports it
  }
  lock.lock();
  has_driver_ = false;
  changed_.notify_all();
}

// Time at which the driver must run again even if no event comes. Needs the driver's role.
Deadline Engine::next_look() {
  Deadline due = kNever;
  const auto include = [&](const Operation& operation) {
    due = std::min({due, operation.deadline, operation.next_wait_report});
  };
  if (const Operation* const head = first_in_queue()) include(*head);
  for (const Operation* const operation : running_) include(*operation);
  if (streams_ != nullptr && streams_->has_unfinished())
    due = std::min(due, Clock::now() + kBetweenLooksAtDevice);
  return due;
}

}  // namespace kolo::inline v0
