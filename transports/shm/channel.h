// Channel over memory shared with one peer: a single-producer, single-consumer stream each way.
//
// Until the first use by one of the two ranks, the channel takes no memory and no descriptor
// (listener.h). After that it makes system calls only to wake a peer that has announced its sleep,
// to pass or take back regions, and for single copies by the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/base/aligned_memory.h"
#include "transports/error.h"
#include "transports/posix/descriptor.h"
#include "transports/posix/shared_memory.h"
#include "transports/posix/unix_socket.h"
#include "transports/shm/copy_choice.h"
#include "transports/shm/layout.h"
#include "transports/shm/peer_memory.h"
#include "transports/shm/regions.h"
#include "transports/transport.h"

namespace kolo::inline v0::shm {

// Facts about two ranks that are known before they share memory.
struct Pair {
  int rank = 0;
  int peer = 0;
  Layout layout{0};
  bool has_barriers = false;  // both ranks accept posix::barrier_everywhere
  int process = 0;            // the peer's process id in its own pid namespace; 0: unknown
  ReadProbe trial;            // in the peer's process
  std::string peer_name;      // "rank 1 (host, process 4711)"
};

// Message about a region, sent over the socket. Wake-ups are the other kind: a single byte.
struct RegionMessage {
  std::uint64_t is_gone = 0;  // 0: the message carries the region's descriptor
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};

class ShmChannel;

// Connects a channel to its peer. The listener implements it.
class Connector {
 public:
  Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  virtual ~Connector() = default;

  // Called by a channel that wants to send or receive and has no region of its peer yet. Does as
  // much as possible now and goes on in later calls of progress().
  virtual void connect(ShmChannel& channel, bool is_sending) = 0;

  // For messages: the reason why this rank cannot accept peers now; else empty.
  virtual std::string why_kept_out() const = 0;

  // Control and frame that channels read before they have their peer's region.
  NoPeer& nobody() { return nobody_; }

 private:
  NoPeer nobody_;
};

class ShmChannel final : public Channel {
 public:
  // `holding` lists the channels that hold a frame back. The transport owns it, `connector` and
  // `regions`. From `single_copy_bytes` on, segments in plain memory may be copied by the kernel;
  // 0: never.
  ShmChannel(Pair pair, Connector& connector, std::vector<ShmChannel*>& holding, Regions& regions,
             std::size_t single_copy_bytes);
  ~ShmChannel() override;

  int peer() const override { return pair_.peer; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override;
  void commit(unsigned flags) override;
  bool send(std::span<const std::byte> data, unsigned flags) override;
  bool send_copy(std::span<const std::byte> data, unsigned flags) override;
  bool send_gathered(std::span<const std::byte> head, std::span<const std::byte> body,
                     std::size_t bytes, unsigned flags) override;
  bool send_both(std::span<const std::byte> head, std::size_t bytes,
                 std::span<const std::byte> next, unsigned flags) override;
  bool is_drained() override;

  const std::byte* view(std::size_t bytes) override;
  const std::byte* view_unaligned(std::size_t bytes) override;
  Both view_both(std::size_t bytes, std::size_t next_bytes) override;
  void release_both() override;
  void release() override;
  bool receive(std::span<std::byte> into, unsigned flags) override;

  std::byte* view_to_answer(std::size_t bytes) override;
  void answer() override;
  const std::byte* view_answer(std::size_t bytes) override;
  void release_answer() override;

  bool is_connected() const override { return is_attached() || has_ended_ || is_dead(); }
  std::string why_unconnected() const override;

  // --- for the listener ---

  bool has_region() const { return mine_ != nullptr; }
  bool has_socket() const { return sockets_[0].is_open() || sockets_[1].is_open(); }
  bool is_attached() const { return !theirs_region_.bytes().empty(); }
  bool is_dead() const { return !failure_.empty(); }

  // Returns the descriptor of this side's region; the first call makes the region. Error
  // kUnavailable if that fails.
  int share();

  // Closes the descriptor once the peer has the region.
  void forget_descriptor() noexcept { mine_region_.forget_descriptor(); }

  // Maps the peer's region. On failure kills the channel and returns false. `process`: the peer's
  // process id in this rank's pid namespace.
  bool attach(posix::Descriptor region, int process);

  // The socket that this rank sends on; -1 if there is none.
  int socket() const { return sockets_[0].get(); }

  // Adds a socket to the peer. This rank sends on the first one.
  void add_socket(posix::Descriptor socket);

  // Receives the peer's first message on the only socket. On kClosed the socket is closed.
  posix::Message hear_first(std::span<std::byte> into);

  // Makes every later call throw this error. Only the first kill() counts.
  void kill(ErrorCode code, std::string why);

  // --- for the transport ---

  // Reads a message from the peer's socket: a wake-up, or a region that comes or goes. kMessage:
  // there may be more. kClosed: the peer has ended.
  posix::Received hear();

  // Called if both ranks have opened a socket. True if this rank's has ended without an orderly
  // close by the peer.
  bool has_lost_own_socket();

  // Publishes the segments held back by kMore. The transport removes the channel from its list.
  void flush();

  // Publishes the core on which this rank waits. True if a call waits for the peer, and the peer
  // has published the same core.
  bool meets_awaited_peer_on(unsigned core);

  // Events that this rank waits for: calls that returned "not now" and have not succeeded since.
  std::uint64_t wanted() const { return wanted_; }

  // Asks the peer to wake this rank on these events.
  void announce_sleep(std::uint64_t events);

  // True if one of the events has occurred since the last report. Each event is reported once.
  bool has_news(std::uint64_t events);

  // Withdraws the announcement. True if the peer had seen it; then a wake-up byte is on its way.
  bool end_sleep();

  // Called when the peer's socket has ended. After an orderly close, only later calls that need
  // more data or credit throw. Otherwise this call and all later ones throw Error kPeerLost.
  void lose_peer();

  // Publishes held segments, marks the channel as closed and closes the sockets. Later calls throw.
  void close() noexcept;

 private:
  enum class Open { kNone, kTiny, kInFrame, kSlot };  // place of the reserved or viewed segment

  // Buffers that are made at the first segment: most pairs of ranks never communicate.
  struct Buffers {
    alignas(kSegmentAlignment) std::array<std::byte, kTinyBytes> tiny_out{};
    alignas(kSegmentAlignment) std::array<std::byte, kTinyBytes> tiny_in{};
    alignas(kSegmentAlignment) std::array<std::byte, kFrameBytes> held{};
    CopyChooser chooser;
    CopyTimes copy_times;
  };

  Buffers& buffers() {
    if (!buffers_) [[unlikely]]
      buffers_ = std::make_unique<Buffers>();
    return *buffers_;
  }

  bool is_begun();
  void unshare() noexcept;
  void count_connections();
  std::byte* slot_at(unsigned slot) { return slots_[slot]; }
  bool has_frame_credit();
  bool find_slot();
  void take_slot(unsigned slot);
  void own_slot(unsigned slot);
  unsigned keep_slot(unsigned received);
  void collect_consumed();
  void send_held();
  std::optional<Offer> offer_of(std::span<const std::byte> data, unsigned flags);
  void look_at_regions();
  bool tell(const RegionPlace& region);
  void take_region(const RegionMessage& message, posix::Descriptor region);
  bool send_offer(std::span<const std::byte> data, const Offer& offer, unsigned flags);
  std::byte* find_offered(std::size_t bytes);
  void check_offer_stands();
  bool send_long(std::span<const std::byte> data, unsigned flags);
  bool send_chosen(std::span<const std::byte> data, unsigned flags, unsigned allowed);
  CopyChooser::Choice choose(std::size_t bytes, unsigned flags, unsigned allowed);
  void begin_timing();
  void end_timing();
  void take_back_lent() noexcept;
  std::byte* tiny_place();
  void commit_tiny(unsigned flags);
  void commit_slot(unsigned flags);
  void publish(const Announcement& announcement, const Offer& offer = {});
  void ask_for_next(unsigned words);
  bool can_publish_alone(unsigned flags);
  Frame& next_alone();
  void publish_alone(Frame& frame, unsigned segments, unsigned words);
  const Frame* look_for(unsigned segments, unsigned words);
  int looks_for_next();
  bool send_both_by_slot(std::span<const std::byte> head, std::size_t bytes,
                         std::span<const std::byte> next);
  Both view_both_by_slot(std::size_t bytes, std::size_t next_bytes);
  bool load_frame();
  std::byte* open_next(std::size_t bytes);
  void close_current();
  void wake(Event event);
  [[noreturn]] void fail();
  [[noreturn]] void fail_protocol(const char* what);
  [[noreturn]] void fail_length(std::size_t expected, std::size_t found);
  void check_alive() {
    if (!failure_.empty()) [[unlikely]]
      fail();
  }
  std::byte* not_now(Event event);

  const Pair pair_;
  const int side_;
  Connector& connector_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::vector<ShmChannel*>& holding_;
  Regions& regions_;
  const std::size_t single_copy_bytes_;
  PeerMemory peer_memory_;
  bool has_choice_ = false;  // of the next long segment, until it is sent
  CopyChooser::Choice choice_;
  Control* mine_ = nullptr;
  Control* theirs_;
  Frame* frames_out_ = nullptr;
  const Frame* frames_in_;
  std::array<std::byte*, 2 * kMostSlots> slots_{};

  // Sending. Counters only grow. The peer's counters are cached and reloaded only when the cached
  // value gives no credit.
  std::uint64_t published_ = 0;
  std::uint64_t consumed_ = 0;                // published frames that the peer consumed, cached
  std::array<bool, kFrames> returns_slot_{};  // whether a slot comes back for frame n % kFrames
  std::array<std::uint8_t, 2 * kMostSlots> free_slots_{};  // this side's; the latest touched last
  std::size_t free_count_ = 0;
  std::uint32_t owned_ = 0;  // bit set of this side's slots: free, reserved or awaiting an answer
  int unmatched_sends_ = 0;  // slots sent for which none was kept in exchange
  std::array<std::uint8_t, kMostSlots>
      answers_{};  // slots to be answered, oldest at answers_read_ % kMostSlots
  std::uint64_t answers_asked_ = 0;
  std::uint64_t answers_read_ = 0;
  std::uint64_t answered_ = 0;                           // cached
  std::array<std::span<std::byte>, kMostSlots> lent_{};  // lent memory instead of slots, or empty
  std::size_t answer_bytes_ = 0;
  std::uint64_t last_offer_ = 0;  // published_ after the last frame with an offer; 0: none
  std::uint64_t regions_version_ = 0;
  std::vector<RegionPlace> known_regions_;
  std::vector<std::uint64_t> told_regions_;  // regions that the peer knows
  Announcement held_;                        // tiny segments held back by kMore
  bool is_listed_ = false;                   // in holding_
  Open reserved_ = Open::kNone;
  unsigned reserved_slot_ = 0;
  std::size_t reserved_bytes_ = 0;

  // Receiving.
  std::uint64_t next_frame_ = 0;  // to consume
  bool has_frame_ = false;        // it has arrived; current_ is its unread rest
  Announcement current_;
  Offer current_offer_;
  Clock::time_point timed_since_{};  // start of timing the current segment; zero: not started
  std::byte* offered_ = nullptr;     // the offered segment, once it is open
  AlignedMemory copied_;             // buffer for a copy of an offered segment
  std::byte* into_ = nullptr;        // the copy's destination during receive()
  unsigned tiny_word_ = 0;           // offset of the next tiny segment
  Open open_ = Open::kNone;
  std::size_t open_bytes_ = 0;
  bool has_both_ = false;  // two segments are in view together
  std::size_t both_bytes_ = 0;
  std::uint64_t looked_for_ = 0;  // 1 + the last frame that was polled repeatedly
  std::uint64_t answers_given_ = 0;

  // Waiting.
  bool is_joined_ = false;  // the peer's region is mapped, and the peer has not ended
  std::uint64_t wanted_ = 0;
  std::uint64_t reported_frame_ = ~std::uint64_t{0};
  std::uint64_t reported_consumed_ = 0;
  std::uint64_t reported_answered_ = 0;
  bool has_ended_ = false;  // the peer closed the channel in order
  std::string end_text_;
  std::string failure_;  // if not empty, all calls throw it
  ErrorCode failure_code_ = ErrorCode::kPeerLost;

  std::array<posix::Descriptor, 2> sockets_;  // two if both ranks have opened one
  posix::SharedMemory mine_region_;
  posix::SharedMemory theirs_region_;
  bool is_closed_ = false;

  std::unique_ptr<Buffers> buffers_;
};
// A rank has a channel for every peer, even if the two never communicate.
static_assert(sizeof(ShmChannel) <= 1280);

}  // namespace kolo::inline v0::shm
