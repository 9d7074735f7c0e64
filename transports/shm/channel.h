// One rank's end of the memory that it shares with one peer: a single-producer, single-consumer
// stream each way.
//
// Nothing is shared, and no page or descriptor taken, before one of the two first uses the channel
// (door.h). From then on nothing here makes a system call but waking a peer that has announced
// that it sleeps.
#pragma once

#include <array>
#include <cstdint>
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

namespace kolo::shm {

// What is known of two ranks before they share anything.
struct Pair {
  int rank = 0;
  int peer = 0;
  Layout layout{0};
  bool has_barriers = false;  // both ranks accept posix::barrier_everywhere
  int process = 0;            // the peer's, as it numbers itself; 0: it cannot be seen
  ReadProbe trial;            // in the peer's process
  std::string peer_name;      // "rank 1 (host, process 4711)"
};

// What goes over the sockets beside bells, which are one byte.
struct RegionMessage {
  std::uint64_t is_gone = 0;  // else its descriptor comes along
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};

class ShmChannel;

// Brings a channel together with its peer: the door.
class Connector {
 public:
  Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  virtual ~Connector() = default;

  // The channel has something for its peer, or waits for something, and has not its region yet.
  // Does what can be done now; where that is nothing, it goes on by itself.
  virtual void connect(ShmChannel& channel, bool is_sending) = 0;

  // What channels read as long as they have nothing of their peer's.
  NoPeer& nobody() { return nobody_; }

 private:
  NoPeer nobody_;
};

class ShmChannel final : public Channel {
 public:
  // `holding` lists the channels that hold a frame back; it, `connector` and `regions` are the
  // transport's.
  // Segments of plain memory are offered, where the kernel copies between the two, from
  // `single_copy_bytes`.
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

  // --- for the door ---

  bool has_region() const { return mine_ != nullptr; }
  bool has_socket() const { return sockets_[0].is_open() || sockets_[1].is_open(); }
  bool is_attached() const { return !theirs_region_.bytes().empty(); }
  bool is_dead() const { return !failure_.empty(); }

  // The descriptor of this side's region, which is made here when it is first asked for. Error
  // kUnavailable where it cannot be.
  int share();

  // The peer has the region: its descriptor is not kept.
  void forget_descriptor() noexcept { mine_region_.forget_descriptor(); }

  // Takes the peer's region; false where it cannot be, and the channel is dead then. `process` is
  // the peer's as numbered here.
  bool attach(posix::Descriptor region, int process);

  // The one that this rank speaks on; -1 where there is none.
  int socket() const { return sockets_[0].get(); }

  // A socket to the peer; what this rank has to say goes over the first.
  void add_socket(posix::Descriptor socket);

  // What came first over the only socket, into `into`; after kClosed there is none.
  posix::Message hear_first(std::span<std::byte> into);

  // Every later call throws this. The first counts.
  void kill(ErrorCode code, std::string why);

  // --- for the transport ---

  // Reads what the peer says over its socket: bells, and the regions that it hands over or takes
  // back. kMessage: there may be more. kClosed: the peer has ended.
  posix::Received hear();

  // Whether the socket that this rank has opened beside the peer's has ended, and that is no end
  // in order.
  bool has_lost_own_socket();

  // Hands over what kMore holds back. The transport takes the channel off its list.
  void flush();

  // What this rank waits for here: the calls that said "not now" since they last did not.
  std::uint64_t wanted() const { return wanted_; }

  // Asks the peer to wake this rank on these events.
  void announce_sleep(std::uint64_t events);

  // True where one of the events has come that was not reported before: they are reported once.
  bool has_news(std::uint64_t events);

  // Takes the announcement back. True where the peer had seen it: a message from it is on its way.
  bool end_sleep();

  // An orderly end is told to who asks for more than has come, any other
  // throws Error kPeerLost.
  void lose_peer();

  // Sends what is held back, tells the peer that this is the end, and hangs up. All calls throw
  // from now on.
  void close() noexcept;

 private:
  enum class Open { kNone, kTiny, kInFrame, kSlot };  // what is reserved, or in view

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
  CopyChooser chooser_;
  bool has_choice_ = false;  // of the next long segment, until it is sent
  CopyChooser::Choice choice_;
  Control* mine_ = nullptr;
  Control* theirs_;
  Frame* frames_out_ = nullptr;
  const Frame* frames_in_;
  std::array<std::byte*, 2 * kMostSlots> slots_{};

  // Out. Counters only grow; the peer's are cached, and read again only when the cached one says
  // "no".
  std::uint64_t published_ = 0;
  std::uint64_t consumed_ = 0;                // of the published, as last read
  std::array<bool, kFrames> returns_slot_{};  // whether a slot comes back for frame n % kFrames
  std::array<std::uint8_t, 2 * kMostSlots> free_slots_{};  // this side's; the latest touched last
  std::size_t free_count_ = 0;
  std::uint32_t owned_ = 0;  // a set: this side's slots, free, reserved or out for an answer
  int unmatched_sends_ = 0;  // slots sent for which none was kept
  std::array<std::uint8_t, kMostSlots>
      answers_{};  // slots to be answered, oldest at answers_read_ % kMostSlots
  std::uint64_t answers_asked_ = 0;
  std::uint64_t answers_read_ = 0;
  std::uint64_t answered_ = 0;                           // as last read
  std::array<std::span<std::byte>, kMostSlots> lent_{};  // in their place; empty: it is in the slot
  std::size_t answer_bytes_ = 0;
  std::uint64_t last_offer_ = 0;  // frames published up to the last that offers; 0: none does
  std::uint64_t regions_version_ = 0;
  std::vector<RegionPlace> known_regions_;
  std::vector<std::uint64_t> told_regions_;  // that the peer knows of
  Announcement held_;                        // tiny segments that kMore holds back
  bool is_listed_ = false;                   // in holding_
  Open reserved_ = Open::kNone;
  unsigned reserved_slot_ = 0;
  std::size_t reserved_bytes_ = 0;

  // In.
  std::uint64_t next_frame_ = 0;  // to consume
  bool has_frame_ = false;        // it has arrived, and this is what is left of it:
  Announcement current_;
  Offer current_offer_;
  Clock::time_point timed_since_{};  // its segment; 0: not yet
  CopyTimes copy_times_;
  std::byte* offered_ = nullptr;  // where it can be read here, once it is open
  AlignedMemory copied_;          // for a copy of it
  std::byte* into_ = nullptr;     // where the copy shall lie instead, while receive() asks
  unsigned tiny_word_ = 0;        // where its next tiny segment begins
  Open open_ = Open::kNone;
  std::size_t open_bytes_ = 0;
  bool has_both_ = false;  // two are in view together
  std::size_t both_bytes_ = 0;
  std::uint64_t looked_for_ = 0;  // the frame that was looked for repeatedly, and one
  std::uint64_t answers_given_ = 0;

  // Waiting.
  bool is_joined_ = false;  // the peer's region is here, and the peer has not ended
  std::uint64_t wanted_ = 0;
  std::uint64_t reported_frame_ = ~std::uint64_t{0};
  std::uint64_t reported_consumed_ = 0;
  std::uint64_t reported_answered_ = 0;
  bool has_ended_ = false;  // the peer closed in order
  std::string end_text_;
  std::string failure_;  // once there is one, all calls throw it
  ErrorCode failure_code_ = ErrorCode::kPeerLost;

  std::array<posix::Descriptor, 2> sockets_;  // two, where both ranks have opened one
  posix::SharedMemory mine_region_;
  posix::SharedMemory theirs_region_;
  bool is_closed_ = false;

  // Tiny segments are written and read here, where they are aligned.
  alignas(kSegmentAlignment) std::array<std::byte, kTinyBytes> tiny_out_{};
  alignas(kSegmentAlignment) std::array<std::byte, kTinyBytes> tiny_in_{};
  alignas(kSegmentAlignment) std::array<std::byte, kFrameBytes> held_bytes_{};
};

}  // namespace kolo::shm
