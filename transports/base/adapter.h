// A whole transport from the least that anybody can write: send and receive of messages.
//
// A PlainTransport moves messages between ranks, in order and reliably, by six functions: channel,
// send, completed, receive, progress, quiesce. The adapter makes slots, views, credit, empty
// segments, statistics and the state after quiesce of it: slots are memory of the adapter's that is
// sent from, a view is memory of the adapter's that was received into. That is a start for any new
// transport, and enough for one whose messages arrive in no place worth looking at.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "transports/transport.h"

namespace kolo {

// Messages to and from one peer; never empty. Both ends know every length beforehand. Errors:
// kolo::Error with the peer.
class PlainChannel {
 public:
  PlainChannel() = default;
  PlainChannel(const PlainChannel&) = delete;
  PlainChannel& operator=(const PlainChannel&) = delete;
  virtual ~PlainChannel() = default;

  // Takes a message to be sent, or false for "not now". The memory stays unchanged until it is
  // completed.
  virtual bool send(std::span<const std::byte> message) = 0;

  // How many of the messages taken so far, in order, need their memory no more.
  virtual std::uint64_t completed() = 0;

  // The next message, whole, or false for "not now": then it is asked again with the same memory.
  virtual bool receive(std::span<std::byte> into) = 0;
};

class PlainTransport {
 public:
  PlainTransport() = default;
  PlainTransport(const PlainTransport&) = delete;
  PlainTransport& operator=(const PlainTransport&) = delete;
  virtual ~PlainTransport() = default;

  virtual PlainChannel& channel(int peer) = 0;
  virtual void progress() = 0;

  // After it returns nothing touches memory that was given to send or receive.
  virtual void quiesce() noexcept = 0;

  // As in Transport; a transport that cannot sleep leaves these alone.
  virtual int descriptor() const { return -1; }
  virtual bool arm() { return false; }
  virtual void disarm() {}
};

struct AdapterSettings {
  std::string_view name;  // must outlive the transport
  int rank = 0;
  int size = 1;
  std::size_t segment_bytes = 64 * 1024;
};

std::unique_ptr<Transport> adapt(std::unique_ptr<PlainTransport> plain,
                                 const AdapterSettings& settings);

}  // namespace kolo
