// Interface of transports: channels, capabilities, statistics.
//
// A *channel* is an ordered, reliable, credit-controlled stream of *segments* to and from one peer.
// Both ends run the same schedule, so both know the length of the n-th segment in each direction:
// the wire carries no lengths and no tags, and there are no rendezvous messages. A segment has at
// most Capabilities::segment_bytes and is contiguous.
//
// There are two ways to send a segment and two to receive one. They mix freely on a channel:
//
//   reserve + commit   write it where it leaves from (a *slot*), such as the output of a kernel
//   send               from the caller's memory; no copy if the transport needs none
//   view + release     read it where it arrived, such as the input of a reduce kernel
//   receive            into the caller's memory; no copy if the transport needs none
//
// All calls return at once. "Not now" is null or false: call again after progress, or after a
// release, which may return credit.
// *Credit* bounds what is in flight. kMinimumCredit segments can always be committed or sent before
// the peer releases any. A schedule that needs no more on any channel cannot deadlock on any
// transport.
//
// *Answers* serve shared memory. The peer does not release a segment committed with kAnswered, but
// overwrites it in place (view_to_answer, answer). Its sender then reads it back (view_answer,
// release_answer). A core that reads and then writes a cache line pays for one transfer, not two.
// Only with Capabilities::can_answer. The segment keeps its credit until release_answer. Answers
// come back in the order in which the segments were sent.
//
// Threading: a Transport and its channels belong to one thread at a time; the owner serialises.
// Different Transports, also in one process, are independent. Errors: any call may throw
// kolo::Error with the peer's rank. The channel is then dead, and every later call throws again.
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

namespace kolo::inline v0 {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Segments that every channel takes before the peer has released any.
inline constexpr int kMinimumCredit = 4;

// Slots and views are aligned to this many bytes, on every transport (one cache line; a multiple of
// every element size). Exception: a view of memory of Transport::allocate has its sender's
// alignment.
inline constexpr std::size_t kSegmentAlignment = 64;

// Abilities of a channel. Upper layers ask these, never the transport's name.
struct Capabilities {
  std::size_t segment_bytes = 64 * 1024;  // the longest segment; a multiple of kSegmentAlignment
  std::size_t preferred_segment_bytes = 64 * 1024;  // best for streaming
  // Best for an operation that uses only send and receive, and no slot or view of this length. 0:
  // preferred_segment_bytes.
  std::size_t straight_segment_bytes = 0;
  // Shorter segments are not worth their overlap: each one costs more than it hides.
  std::size_t shortest_segment_bytes = 8 * 1024;
  int credit_segments = kMinimumCredit;  // full segments in flight per direction
  // From this length on, send and receive need no more copies than slots and views.
  std::size_t zero_copy_bytes = std::numeric_limits<std::size_t>::max();
  double latency_us = 0;      // estimates, before anything is measured
  double bandwidth_GBps = 0;  // one direction, bytes per nanosecond
  bool can_answer = false;
};

// Flags of commit, send and receive.
enum SegmentFlags : unsigned {
  kPlain = 0,
  kMore = 1,      // another segment follows at once; this one may wait for it
  kAnswered = 2,  // the peer overwrites it in place; read it back with view_answer
  kReceived = 4,  // of send: the peer takes it with receive(), so a direct copy pays
  kLent = 8,      // of send with kAnswered: the peer may leave the answer in the data, where
                  // view_answer then finds it; until then the data belong to the peer
  kCold = 16,     // of receive: `into` is in no cache and is not read soon; a copy may bypass them
};

// Counted by the channel itself, so that tests can compare the bytes moved with a formula.
struct ChannelStatistics {
  std::uint64_t bytes_sent = 0;  // segments' bytes; an answer counts for the answering rank
  std::uint64_t bytes_received = 0;
  std::uint64_t segments_sent = 0;
  std::uint64_t segments_received = 0;
  std::uint64_t system_calls = 0;  // its own, with wake-ups of the peer; 0 below an adapter
  std::uint64_t connections = 0;   // open now, if the transport is made of connections
};

// Counted by the waiting rank, which spins, yields or sleeps.
struct WaitStatistics {
  std::uint64_t waits = 0;   // times that a call was not ready at once
  std::uint64_t spins = 0;   // short pauses on the core
  std::uint64_t yields = 0;  // the core was offered to other threads
  std::uint64_t sleeps = 0;  // until the kernel wakes it: one system call, and those of arm
  // Time in waits, without the first and last microseconds of each, which are not timed.
  std::uint64_t waited_ns = 0;
};

class StreamAnswers;

// The channel's operations ordered on a device stream. Each call returns at once and makes the
// *stream* wait where the host's form would return "not now". `stream` is the device runtime's
// stream handle.
//
// Batches: begin and end bracket a batch, and all its calls name the same stream. The next batch
// may be on another stream, and the first one may have been destroyed: the batch waits for the
// work of the last one without its stream. A transport that needs no brackets ignores them.
//
// Slots: reserve, commit, view and release use slots, whose places are known without the peer. So
// the host does not wait for the peer, unless its streams are far behind: a queue of the driver is
// finite. A host that has enqueued some hundred segments ahead of the device must make progress
// before it enqueues more, and reserve and view return null (call again after progress).
//
// Direct: with can_send(), memory also goes straight: the receiver's stream reads it where it lies.
// Its host must know the place, so receive and view_sent return "not now" until the peer's host has
// *enqueued* its send. The work itself is the stream's. A segment that was sent is taken by receive
// or view_sent, a committed one by view. Memory that the peer cannot reach goes through slots
// automatically. Host memory that no device reaches is not allowed.
//
// If hosts carry the data (base/staged.h), streams advance as their hosts make progress.
class StreamChannel {
 public:
  virtual ~StreamChannel() = default;

  // Capabilities of the stream's form; segment_bytes is its longest slot.
  virtual const Capabilities& capabilities() const = 0;

  virtual void begin(void* /*stream*/) {}
  virtual void end(void* /*stream*/) {}

  virtual std::byte* reserve(void* stream, std::size_t bytes) = 0;  // null: not now; see above
  virtual void commit(void* stream, unsigned flags) = 0;
  virtual const std::byte* view(void* stream, std::size_t bytes) = 0;
  virtual void release(void* stream) = 0;

  // Why its operations cannot be captured into a graph that is launched many times. Empty: those
  // through slots can. Then all channels of a batch begin before any of them sends, and all are
  // drained before any of them ends. All ranks launch one graph after another, in the same order.
  virtual std::string why_not_captured() const;

  // True: its segments are those of the channel's host form, one for one, in the order of the calls
  // to both forms. So the peer may take with one form a segment that was sent with the other. They
  // move while the host makes progress. False: the two forms are independent.
  virtual bool is_one_with_host() const { return false; }

  // Error kPeerLost if the peer closed before its streams were done: they were released in the
  // middle, and may have sent wrong data since. Call it on all channels of a transport when a
  // stream has finished, before its results are used: wrong data may arrive through a third rank.
  virtual void require_whole() {}

  // Memory of any length, without slots. False and null: not now.
  virtual bool can_send() const { return false; }
  virtual bool send(void* stream, std::span<const std::byte> data, unsigned flags);
  virtual bool receive(void* stream, std::span<std::byte> into, unsigned flags);
  virtual const std::byte* view_sent(void* stream, std::size_t bytes);  // until release

  // Answers in place; null: none.
  virtual StreamAnswers* answers() { return nullptr; }

  // The stream waits until the memory of all send() calls is free again.
  virtual void drain(void* stream);

  // Until end(), words that the stream writes for the peer may be held back, and go to the driver
  // in one call with the next word that the stream waits for. The caller promises to call flush()
  // before it enqueues other work on the stream, and before this host waits for a peer. Call it on
  // all channels of a batch.
  virtual void combine_words(void* /*stream*/) {}
  virtual void flush(void* /*stream*/) {}
};

// Answers in place, between ranks whose streams reach each other's memory equally well. The peer
// reduces a segment once, and stores the result in its own memory and in this rank's. So no rank
// reads the result to copy it.
class StreamAnswers {
 public:
  virtual ~StreamAnswers() = default;

  // Like StreamChannel::send. The answer goes to `into`, of the same length. The peer writes there
  // until drain(). `into` may be `data`. False: not now.
  virtual bool send(void* stream, std::span<const std::byte> data, std::span<std::byte> into) = 0;

  // The place of the answer to the segment of view_sent(), until its release. Null: the peer's
  // place cannot be mapped; then send the answer as a segment.
  virtual std::byte* place() const = 0;

  // Takes the answer to the oldest segment of send() above. It is in place for work after drain().
  // False: not now.
  virtual bool receive(void* stream, std::span<std::byte> into) = 0;
};

// Views of two segments.
struct Both {
  const std::byte* first = nullptr;  // null: no view
  const std::byte* next = nullptr;
};

// One peer's stream of segments, in both directions. See the head of this file.
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

  // An aligned slot of `bytes` for the next segment; null while there is no credit. At most one is
  // reserved at a time.
  virtual std::byte* reserve(std::size_t bytes) = 0;

  // Hands over the reserved slot.
  virtual void commit(unsigned flags = kPlain) = 0;

  // Sends `data` as one segment; false while there is no credit. The memory must stay unchanged
  // until is_drained().
  virtual bool send(std::span<const std::byte> data, unsigned flags = kPlain) = 0;

  // The same, but the data are copied before it returns true. The caller may overwrite them then.
  virtual bool send_copy(std::span<const std::byte> data, unsigned flags = kPlain);

  // The same for a short segment of `bytes`: `head` (whole words of 8 bytes), then `body`. The rest
  // of the segment arrives with undefined content.
  virtual bool send_gathered(std::span<const std::byte> head, std::span<const std::byte> body,
                             std::size_t bytes, unsigned flags = kPlain);

  // Such a short segment (`head`) and the short one after it (`next`), both copied, in one call.
  // False: neither was sent, perhaps because the channel does not support it. So do not wait for
  // it; send one segment after the other.
  virtual bool send_both(std::span<const std::byte> head, std::size_t bytes,
                         std::span<const std::byte> next, unsigned flags = kPlain);

  // True if the memory of all send() calls is free again, and no segment is held back.
  virtual bool is_drained() = 0;

  // --- in ---

  // The next segment, of `bytes`, where it lies; null until it has arrived completely. Valid until
  // release.
  virtual const std::byte* view(std::size_t bytes) = 0;
  virtual void release() = 0;

  // The same, but only aligned to 8 bytes. May poll for some tens of nanoseconds.
  virtual const std::byte* view_unaligned(std::size_t bytes) { return view(bytes); }

  // The next two segments, only aligned to 8 bytes, if they were sent by send_both(). No other call
  // may take a segment until release_both(). No view: they have not arrived, or were sent in
  // another way; then take them one by one.
  virtual Both view_both(std::size_t bytes, std::size_t next_bytes);
  virtual void release_both();

  // Takes the next segment into `into`; false until it is complete: then call again with the same
  // span. Between the two calls the transport may write there.
  virtual bool receive(std::span<std::byte> into, unsigned flags = kPlain) = 0;

  // --- answers; only with can_answer ---

  // Like view and release, but the caller may overwrite the bytes, and they go back to the sender.
  virtual std::byte* view_to_answer(std::size_t bytes);
  virtual void answer();

  // This rank's oldest segment with kAnswered, as the peer left it; null until the peer answers.
  virtual const std::byte* view_answer(std::size_t bytes);
  virtual void release_answer();

  // --- optional ---

  // This channel's device-ordered form, or null; why_no_stream is the reason, for error messages.
  virtual StreamChannel* stream() { return nullptr; }
  virtual std::string why_no_stream() const;

  // --- connections made on demand ---

  // False: there is no connection to the peer yet, so no data can have arrived. A call that sends
  // or receives starts to connect. Ask this first to look for data without connecting. True if the
  // transport needs no connection.
  virtual bool is_connected() const { return true; }

  // Why a started connection is not complete or moves no data. Advice, if any, follows after "; ".
  // Empty: no known reason.
  virtual std::string why_unconnected() const { return ""; }

  // The peer's network address of the open connection, for reports: "10.0.0.2". Empty: there is no
  // connection, or it has no such address.
  virtual std::string remote_address() const { return ""; }

  // Numbers of what is in flight here, for the same message: they show which side stands still.
  // Empty: unknown.
  virtual std::string under_way() const { return ""; }
};

// Channels of one rank to all its peers, and their progress, sleep and end.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;
  // The transport that carries the data of the channel to `peer`, if this one is made of several.
  virtual std::string_view name_to(int /*peer*/) const { return name(); }
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The channel to `peer`, which is not this rank. While it connects, its calls return "not now".
  virtual Channel& channel(int peer) = 0;

  // Advances sends, arrivals and connections, and detects deaths of peers. Does not block.
  virtual void progress() = 0;

  // --- sleeping: arm; if true, poll descriptor() for input until the deadline; disarm ---

  // Once armed, readable when progress() has something to do. -1: cannot sleep; the caller yields.
  virtual int descriptor() const = 0;

  // Requests a wake-up. False: there is an event already; do not sleep, and do not disarm.
  virtual bool arm() = 0;
  virtual void disarm() = 0;

  // True if a peer that this rank waits for runs on the core of the calling thread. The thread then
  // should yield. Also publishes this core to the peers. Called in waits of a microsecond or more.
  // False if the transport does not know.
  virtual bool shares_core_with_awaited_peer() { return false; }

  // Ends all operations. After it returns nothing touches the caller's memory, and the caller must
  // not touch slots and views. Every call of a channel that moves data or finishes with it (out,
  // in, answers) throws kAborted, with or without a slot, view or answer in hand. send_both and
  // view_both return that they did nothing. All other calls remain allowed: progress() and disarm()
  // do nothing, arm() returns false, allocate() returns memory, and queries return their last
  // values.
  virtual void quiesce() noexcept = 0;

  // Zeroed, page-aligned memory, all of it present. If the transport supports it, peers reach it
  // without a copy: they read segments sent from there, and answer lent ones, in place. Elsewhere
  // it is plain memory. It may outlive the transport. From any thread. Error kSystem without
  // memory.
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t bytes);

  // What carries the data, if there are several choices (libfabric's provider, UCX's transports),
  // for reports of measurements; empty elsewhere. From any thread.
  virtual std::string carrier() const { return ""; }
};

}  // namespace kolo::inline v0
