// Adapter that makes a complete transport of one that only sends and receives messages.
//
// A PlainTransport moves messages between ranks, in order and reliably, by six functions: channel,
// send, completed, receive, progress, quiesce. The adapter adds slots, views, credit, empty
// segments, statistics and the state after quiesce. A slot is memory of the adapter that it sends
// from; a view is memory of the adapter that it received into (one copy each). Use it to start any
// new transport, or for a network whose received messages cannot be viewed in place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "transports/transport.h"

namespace kolo::inline v0 {

// Messages to and from one peer; never empty. Both ends know every length beforehand. Errors:
// kolo::Error with the peer.
class PlainChannel {
 public:
  PlainChannel() = default;
  PlainChannel(const PlainChannel&) = delete;
  PlainChannel& operator=(const PlainChannel&) = delete;
  virtual ~PlainChannel() = default;

  // Accepts a message for sending; false: not now. The memory stays unchanged until the message is
  // completed.
  virtual bool send(std::span<const std::byte> message) = 0;

  // Number of messages, of those accepted so far and in order, whose memory is free again.
  virtual std::uint64_t completed() = 0;

  // Receives the next message completely. False: not now; called again with the same memory.
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

  // As in Transport. A transport that cannot sleep does not override them.
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

}  // namespace kolo::inline v0
