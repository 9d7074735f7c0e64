#include "transports/base/event_descriptor.h"

#include <algorithm>

namespace kolo::inline v0 {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};

}  // namespace

EventDescriptor::EventDescriptor(Transport& transport, Store& store) : transport_(transport) {
  for (const int watched :
       {transport.descriptor(), store.descriptor(), event_.descriptor(), timer_.descriptor()}) {
    if (watched >= 0) epoll_.add(watched, EPOLLIN, 0);
  }
}

void EventDescriptor::arm(Deadline due) {
  if (transport_.descriptor() < 0) {
    due = std::min(due, Clock::now() + kBetweenLooks);
  } else if (!is_armed_) {
    watch_transport(true);
    is_armed_ = transport_.arm();
    if (!is_armed_) ring();
  }
  // An earlier timer stays: it costs one round of the event loop, while to set it again costs a
  // system call.
  if (timer_at_ <= due && timer_at_ > Clock::now()) return;
  timer_at_ = due;
  if (due == Deadline::max()) {
    timer_.clear();
  } else {
    timer_.set(due);
  }
}

void EventDescriptor::disarm() {
  event_.silence();
  if (is_armed_) transport_.disarm();
  is_armed_ = false;
  if (timer_at_ != Deadline::max() && timer_at_ <= Clock::now()) {
    timer_.clear();
    timer_at_ = Deadline::max();
  }
}

void EventDescriptor::rest() {
  disarm();
  watch_transport(false);
}

void EventDescriptor::watch_transport(bool watches) {
  if (transport_.descriptor() < 0 || watches == watches_transport_) return;
  epoll_.change(transport_.descriptor(), watches ? std::uint32_t{EPOLLIN} : 0u, 0);
  watches_transport_ = watches;
}

}  // namespace kolo::inline v0
