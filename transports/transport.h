// The contract between those who move bytes and those who give them meaning.
//
// A *channel* is an ordered, reliable, credit-controlled stream of *segments* to and from one peer.
// Both ends run the same schedule, so both know the length of the n-th segment in each direction:
// nothing on the wire says it, there are no tags and no rendezvous messages. A segment is at most
// Capabilities::segment_bytes long and always contiguous.
//
// There are two ways to send a segment and two to receive one, to be mixed freely on one channel:
//
//   reserve + commit   write it where it leaves from (a *slot*): there a kernel puts its output
//   send               from the caller's memory; no copy where the transport can do without
//   view + release     read it where it arrived: a reduce kernel takes its input from there
//   receive            into the caller's memory; no copy where the transport can do without
//
// All of these return at once: "not now" is null or false, to be asked again after progress, and
// after a release, which may bring credit as well.
// *Credit* bounds what is in flight: kMinimumCredit segments can always be committed or sent before
// the peer releases any, and a schedule that needs no more than these on any channel cannot
// deadlock on any transport.
//
// *Answers* serve shared memory. A segment committed with kAnswered is not released by the peer but
// overwritten in place (view_to_answer, answer) and then read back by its sender (view_answer,
// release_answer): a core that reads and then writes a cache line pays for one transfer, not two.
// Only where Capabilities::can_answer. The segment keeps its credit until release_answer. Answers
// come back in the order in which the answered segments were sent.
//
// Threading: a Transport and its channels belong to one thread at a time; the owner serialises.
// Different Transports, also of one process, are independent. Errors: any call may throw
// kolo::Error with the peer's rank; the channel is then dead and every later call throws again.
// Lifetime: channels live as long as their transport.
//
// Device memory: a channel's own calls take host memory. Device memory goes through
// Channel::stream(), ordered on a device stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kolo {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Segments that every channel takes before the peer has released any.
inline constexpr int kMinimumCredit = 4;

// Slots and views are aligned to this many bytes, on every transport (one cache line; a multiple of
// every element). A view of memory that Transport::allocate gave out lies as its sender had it.
inline constexpr std::size_t kSegmentAlignment = 64;

// What a channel can do, as numbers and flags. Upper layers ask these, never the transport's name.
struct Capabilities {
  std::size_t segment_bytes = 64 * 1024;  // the longest segment; a multiple of kSegmentAlignment
  std::size_t preferred_segment_bytes = 64 * 1024;  // best for streaming
  // Best where all goes from the sender's memory to the receiver's by send and receive, and no slot
  // or view must be as long; 0: what is preferred.
  std::size_t straight_segment_bytes = 0;
  // Data is not cut into shorter segments to overlap their work: each costs more than that hides.
  std::size_t shortest_segment_bytes = 8 * 1024;
  int credit_segments = kMinimumCredit;  // full segments in flight per direction
  // From here on send and receive copy nothing that a slot or a view would spare.
  std::size_t zero_copy_bytes = std::numeric_limits<std::size_t>::max();
  double latency_us = 0;      // estimates, before anything is measured
  double bandwidth_GBps = 0;  // one direction, bytes per nanosecond
  bool can_answer = false;
};

// Flags of commit, send and receive.
enum SegmentFlags : unsigned {
  kPlain = 0,
  kMore = 1,      // another segment follows at once: this one may wait, to be sent with it
  kAnswered = 2,  // the peer overwrites it in place; read it back with view_answer
  kReceived = 4,  // of send: the peer takes it with receive(), so a copy straight there pays
  kLent = 8,      // of send with kAnswered: the answer may be left in the data, where view_answer
                  // then shows it; until then the data are the peer's
  kCold = 16,  // of receive: `into` is in no cache, and is not read soon: a copy may go past them
};

// Counted by the channel itself, so that bytes moved can be held against a formula.
struct ChannelStatistics {
  std::uint64_t bytes_sent = 0;  // segments' bytes; answers count for the one who answers
  std::uint64_t bytes_received = 0;
  std::uint64_t segments_sent = 0;
  std::uint64_t segments_received = 0;
  std::uint64_t system_calls = 0;  // its own, waking the peer among them; 0 below an adapter
  std::uint64_t connections = 0;   // open now, where the transport is made of connections
};

// Counted by who waits.
struct WaitStatistics {
  std::uint64_t waits = 0;   // times that something was not there at once
  std::uint64_t spins = 0;   // short pauses on the core
  std::uint64_t yields = 0;  // the core offered to others
  std::uint64_t sleeps = 0;  // until the kernel wakes it: one system call, and those that arm it
};

// The channel's operations ordered on a device stream: each returns at once and makes the *stream*
// wait where the host's form would say "not now". `stream` is the device runtime's stream handle.
//
// A stream may be destroyed between two batches of operations, and another one take over: begin and
// end bracket a batch, all of whose calls name one stream, and the next batch waits for the last
// one's work without asking its stream again. Where a transport needs no such thing, neither does
// anything.
//
// reserve, commit, view and release go through slots, whose places are known without asking the
// peer: the host does not wait for it. Where can_send(), memory also goes straight: the receiver's
// stream reads it where it lies. For that its host must know where, so receive and view_sent say
// "not now" until the peer's host has *enqueued* its send; the work itself is the stream's. What
// was sent is received or view_sent, what was committed is viewed. Memory that cannot be reached by
// the peer is carried through slots, unasked. Nothing of it is for host memory that no device
// reaches.
//
// Where hosts carry the data (base/staged.h), streams get on as their hosts make progress, and a
// host that has enqueued hundreds of operations ahead of the device must do so before it enqueues
// more: there reserve and view say "not now", too (null; nothing has changed, and the call is made
// again after progress).
class StreamChannel {
 public:
  virtual ~StreamChannel() = default;

  // Of the stream's form: the longest slot, and of which kind of memory slots and views are.
  virtual const Capabilities& capabilities() const = 0;

  virtual void begin(void* /*stream*/) {}
  virtual void end(void* /*stream*/) {}

  virtual std::byte* reserve(void* stream, std::size_t bytes) = 0;  // null: not now; see above
  virtual void commit(void* stream, unsigned flags) = 0;
  virtual const std::byte* view(void* stream, std::size_t bytes) = 0;
  virtual void release(void* stream) = 0;

  // Why its operations cannot be captured into a graph, which launches them again and again; empty:
  // they can, those through slots. Then all channels of a batch begin before any sends, and all are
  // drained before any ends; reserve says "not now" until the peer's host has captured, too; and
  // the launches of every rank are in the same order, one after another.
  virtual std::string why_not_captured() const;

  // Its segments are those of the channel's own form, one for one and in the order of the calls to
  // both: so the peer may take by either what was given by the other. They move while there is
  // progress. Else the two forms know nothing of each other.
  virtual bool is_one_with_host() const { return false; }

  // Error kPeerLost where the peer has closed before its streams had done all: they were let go of
  // in the middle, and what they have sent on since may be anything. Asked of all channels of a
  // transport when a stream has come to an end, before its results are believed: what a peer let
  // go of may have come by way of a third.
  virtual void require_whole() {}

  // Of any length. False and null: not now.
  virtual bool can_send() const { return false; }
  virtual bool send(void* stream, std::span<const std::byte> data, unsigned flags);
  virtual bool receive(void* stream, std::span<std::byte> into, unsigned flags);
  virtual const std::byte* view_sent(void* stream, std::size_t bytes);  // until release

  // The stream waits until no memory given to send() is needed any more.
  virtual void drain(void* stream);
};

// Two segments in view.
struct Both {
  const std::byte* first = nullptr;  // null: none are
  const std::byte* next = nullptr;
};

class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  virtual int peer() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual const ChannelStatistics& statistics() const = 0;

  // --- out ---

  // A slot of `bytes` for the next segment, aligned; null while there is no credit. At most one at
  // a time.
  virtual std::byte* reserve(std::size_t bytes) = 0;

  // Hands over the reserved slot.
  virtual void commit(unsigned flags = kPlain) = 0;

  // Sends `data` as one segment; false while there is no credit. The memory must stay unchanged
  // until is_drained().
  virtual bool send(std::span<const std::byte> data, unsigned flags = kPlain) = 0;

  // The same, but the data are copied before it returns true, and are the caller's again at once.
  virtual bool send_copy(std::span<const std::byte> data, unsigned flags = kPlain);

  // The same, of a short segment of `bytes` that begins with `head`, whole words of 8 bytes, and
  // then `body`; what lies behind them arrives as anything.
  virtual bool send_gathered(std::span<const std::byte> head, std::span<const std::byte> body,
                             std::size_t bytes, unsigned flags = kPlain);

  // Such a short segment and the short one after it, at once and copied. False: neither was sent,
  // be it that the channel has no such way, which is no reason to wait: send one, and then the
  // other.
  virtual bool send_both(std::span<const std::byte> head, std::size_t bytes,
                         std::span<const std::byte> next, unsigned flags = kPlain);

  // True when no memory given to send() is needed any more and nothing is held back.
  virtual bool is_drained() = 0;

  // --- in ---

  // The next segment, which is `bytes` long, where it lies; null while it has not arrived whole.
  // Valid until release.
  virtual const std::byte* view(std::size_t bytes) = 0;
  virtual void release() = 0;

  // The same for who can read it where it is aligned to 8 bytes alone. May look for it for some
  // tens of nanoseconds.
  virtual const std::byte* view_unaligned(std::size_t bytes) { return view(bytes); }

  // The next two segments, aligned to 8 bytes alone, where they came by send_both(); nothing else
  // may be asked for then until release_both(). None where they have not come, or not so: that says
  // nothing, and the two are to be asked for one by one.
  virtual Both view_both(std::size_t bytes, std::size_t next_bytes);
  virtual void release_both();

  // The next segment into `into`; false while it is not whole: then call again with the same span.
  // Between the two calls the transport may already write there.
  virtual bool receive(std::span<std::byte> into, unsigned flags = kPlain) = 0;

  // --- answers; only where can_answer ---

  // Like view and release, but the bytes may be overwritten and go back to the sender.
  virtual std::byte* view_to_answer(std::size_t bytes);
  virtual void answer();

  // The oldest answered segment of mine, as the peer left it; null while it has not answered.
  virtual const std::byte* view_answer(std::size_t bytes);
  virtual void release_answer();

  // --- optional ---

  // This channel's device-ordered form, or null; then why, for the message of who wanted one.
  virtual StreamChannel* stream() { return nullptr; }
  virtual std::string why_no_stream() const;

  // --- connections that are made when they are needed ---

  // False while there is no connection to the peer, and so nothing of it can have arrived. A call
  // that sends or receives begins to make one; who only wants to see whether there is something
  // asks this first. True where nothing has to be made.
  virtual bool is_connected() const { return true; }

  // What is in the way of a connection that has been begun, for the message of who waited in vain;
  // empty where nothing is.
  virtual std::string why_unconnected() const { return ""; }

  // What is under way here, in numbers, for the same message: that of a wait in vain then says on
  // which side it stands still. Empty where a channel does not tell.
  virtual std::string under_way() const { return ""; }
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The channel to `peer` (not to oneself). It may still be connecting: then its calls say "not
  // now".
  virtual Channel& channel(int peer) = 0;

  // Moves what can be moved, without blocking: what was sent, what has arrived, connections, deaths
  // of peers.
  virtual void progress() = 0;

  // --- sleeping: arm; if true, poll descriptor() for input until the deadline; disarm ---

  // Readable when progress() has something to do, once armed. -1: cannot sleep, the caller yields
  // instead.
  virtual int descriptor() const = 0;

  // Asks to be woken. False: something is there already, do not sleep (and do not disarm).
  virtual bool arm() = 0;
  virtual void disarm() = 0;

  // After it returns no operation touches the caller's memory, whatever was under way, and slots
  // and views are not to be touched either; the transport is then dead. Every call of a channel
  // that moves something or finishes with it (out, in, answers) throws kAborted, with a slot, a
  // view or an answer in hand or not; send_both and view_both say that they did nothing. All else
  // may still be called: progress() and disarm() do nothing, arm() says false, allocate() gives
  // memory, what tells tells what it last knew.
  virtual void quiesce() noexcept = 0;

  // Zeroed memory, all of it present, for buffers that peers can reach without a copy where the
  // transport has such (segments sent from there are read, and lent ones answered, where they
  // lie); page-aligned, and plain memory elsewhere. It may outlive the transport. From any thread.
  // Error kSystem where there is none.
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t bytes);

  // What it goes over where there are several such (libfabric's provider, the transports that UCX
  // has taken), for who tells what was measured; empty elsewhere. From any thread.
  virtual std::string carrier() const { return ""; }
};

}  // namespace kolo
