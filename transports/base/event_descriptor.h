// Descriptor for event loops: readable when a transport, its store or a deadline needs progress.
//
// An epoll set of the transport's and the store's descriptors, of a timer and of an event. The
// driver of the transport arms it after its last progress, and disarms it before the next.
//
// Threading: ring() from any thread; all else with the driver's role.
#pragma once

#include "transports/posix/epoll.h"
#include "transports/posix/event.h"
#include "transports/posix/timer.h"
#include "transports/rendezvous.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

class EventDescriptor {
 public:
  // Error kSystem: out of descriptors. The transport and the store must outlive it.
  EventDescriptor(Transport& transport, Store& store);

  int descriptor() const { return epoll_.descriptor(); }

  // Requests that the descriptor become readable at the next event, or at `due`. A transport
  // without a descriptor is polled every millisecond.
  void arm(Deadline due);
  // Ends the request.
  void disarm();
  // Ends the request, as nothing is in flight. A peer may already send data of its next operation.
  // progress() would not receive it, so it does not make the descriptor readable.
  void rest();

  // Makes the descriptor readable until the next disarm() or rest().
  void ring() noexcept { event_.ring(); }

 private:
  Transport& transport_;
  posix::Event event_;
  posix::Timer timer_;
  posix::Epoll epoll_;
  void watch_transport(bool watches);

  bool is_armed_ = false;
  bool watches_transport_ = true;
  Deadline timer_at_ = Deadline::max();
};

}  // namespace kolo::inline v0
