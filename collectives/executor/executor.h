// The executor: runs one rank's schedule over channels.
//
// A schedule is compiled once into a flat table of lines (channel pointers, places, stages); an
// operation binds the table to its buffers and then calls advance() until it says so. advance()
// goes as far as the channels let it and returns: turn, step and what is open on each channel are
// all the state there is. No allocation, lock or clock, and no work that is proportional to
// anything but segments.
//
// Zero copy and buffers in use. send() may leave the caller's memory in use until the channel is
// drained, so a schedule that later overwrites what it sent needs care (schedule/buffer_reuse.h):
// such a step sends a copy from a slot. So does every send of an all_to_all in place. A sum that is
// kept leaves from where it is kept, by the same rule.
//
// A segment that is sent for an answer is *lent* instead, where input and output are one and
// nothing else of the schedule touches it: the peer, where it can reach the memory
// (Communicator::allocate), writes the answer there, and nothing is copied at all.
//
// A scaled sum scales what it reads of the caller's input, and nothing else: each contribution
// once, where it enters, as the checker proves. A send from there is then a copy from a slot.
//
// Threading: one thread at a time, the one that drives the transport.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/element.h"
#include "collectives/executor/call_header.h"
#include "collectives/schedule.h"
#include "collectives/schedule/layout.h"
#include "collectives/user_reduce_op.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo {

class PrepostedReceives;
class Recorder;

// What step kUpdate calls: the index of the first element, and the elements.
using Update = std::function<void(std::size_t first, std::span<std::byte> sums)>;

// What an operation runs a schedule on.
struct Binding {
  const void* in = nullptr;
  void* out = nullptr;
  CallHeader header;               // count, type, op and segment length are taken from it
  const Update* update = nullptr;  // null or empty: nothing to call
  // Elements of every chunk; empty: the header's count, split evenly.
  std::span<const std::size_t> lengths = {};
  // The lengths are this rank's alone (each knows what it sends to whom), so that the headers'
  // count is that of their channel.
  bool has_own_lengths = false;
  const UserReduceOp* reducer = nullptr;  // of a user function
  double scale = 1;                       // of a scaled sum: this rank's factor
  Recorder* recorder = nullptr;           // leaves word of every step there; null: of none
};

// Bytes per segment for chunks of `chunk_bytes`: `preferred`, or less, down to `shortest`, so that
// a chunk has several turns to overlap. A multiple of kSegmentAlignment; the same on all ranks, as
// it follows from what they agree on.
std::size_t choose_segment_bytes(std::size_t chunk_bytes, std::size_t preferred,
                                 std::size_t shortest);

class Executor {
 public:
  // `channels`: by rank, null for this rank itself. Borrowed. `cache_bytes`: what the last-level
  // cache holds for this rank; memory of operations beyond it is written past the caches
  // (executor/non_temporal_stores.cpp). `sends_header_alone`: no payload travels with the header
  // that opens a channel, as a peer may take one by its host and the other by its device's stream.
  Executor(Schedule schedule, std::span<Channel* const> channels,
           std::size_t cache_bytes = std::numeric_limits<std::size_t>::max(),
           bool sends_header_alone = false);

  const Schedule& schedule() const { return schedule_; }

  // Begins an operation; the one before must be done, or is forgotten.
  void start(const Binding& binding);

  // The same for one like that before, of which `header` and buffers say all. False, and to be
  // started by start(), where the one before was another, be it in more than its sequence.
  bool start_again(const CallHeader& header, std::uint32_t sequence, const void* in, void* out);

  // Goes as far as it can; true once the operation is done: results in place, and none of the
  // caller's memory in use. kolo::Error: from the channels, or kMismatch where a peer opens with
  // another header.
  bool advance() { return is_single_segment_ ? advance_single_segment() : advance_in_turns(); }

  // Compares the headers that have arrived but are not yet needed: to be called now and then by who
  // is blocked.
  void check_arrivals();

  // Whether the schedule receives on `channel`.
  bool receives_on(const Channel& channel) const {
    for (const Direction& in : in_) {
      if (in.channel == &channel) return true;
    }
    return false;
  }

  // Grows with every segment handled: tells whether an advance() moved anything.
  std::uint64_t moves() const { return moves_; }

  // Header bytes sent so far in all operations; the channels count them as bytes sent.
  std::uint64_t header_bytes_sent() const { return header_bytes_sent_; }
  std::uint64_t header_bytes_received() const { return header_bytes_received_; }

  // What advance() waits for: whom, and in words, "receive of 4.0 MiB from rank 2".
  int awaited_peer() const { return awaited_peer_; }
  std::string describe_wait() const;
  // "ring step 5 of 14".
  std::string describe_location() const;

 private:
  static constexpr std::size_t kNoDirection = static_cast<std::size_t>(-1);

  struct Line;

  // A channel in one direction, during one operation.
  struct Direction {
    Channel* channel = nullptr;
    std::uint64_t opened = 0;  // the operation whose header went out, or came in and was right
    std::size_t payload = 0;   // bytes of payload that travel in the opening segment
    std::size_t elements = 0;  // of the operation, on this channel
    Line* first = nullptr;     // whose segment opens it; null: no segment at all
    PrepostedReceives* expecting =
        nullptr;                   // the same channel, where it wants to know what is to come
    std::size_t ahead = 0;         // segments that post_expected_receives() has found to come on it
    bool is_posting_done = false;  // no more of them can be told
  };

  // A chunk of this operation.
  struct Part {
    std::size_t begin = 0;
    std::size_t bytes = 0;
    std::size_t segments = 0;
  };

  // A segment that is kept open for an answer.
  struct Held {
    std::byte* bytes = nullptr;
    std::size_t header_bytes = 0;  // that go back with it
  };

  // A step, ready to run: what is known of the schedule, then what is known of the operation.
  struct Line {
    StepKind kind = StepKind::kSend;
    std::uint8_t stage = 0;
    std::uint8_t slice = 0;
    bool is_final = false;
    bool is_held = false;
    bool is_in_last = false;
    bool reads_input = false;  // which a scaled sum scales on the way
    bool must_copy = false;    // a send that may not leave the memory in use
    bool is_direct = false;    // one that also sends, from memory, as the channels copy nothing
    bool may_lend = false;     // a send for an answer that may be written where it is wanted
    // It writes to the caller's memory, which nothing else of the schedule touches:
    bool is_uncached_out_of_place = false;  // where input and output are apart
    bool is_uncached_in_place = false;      // where they are one
    bool opens_out = false;  // this operation's first segment on `out_index`, or `in_index`
    bool opens_in = false;
    std::uint16_t chunk = 0;
    std::size_t question = 0;  // of a kReceiveAnswer: the line that sent what is answered
    Operand in_operand;
    Operand out_operand;
    std::size_t out_index = 0;  // into out_ and in_
    std::size_t in_index = 0;
    Channel* to = nullptr;
    Channel* from = nullptr;
    Held* held = nullptr;

    std::size_t segments = 0;  // of the chunk
    std::size_t bytes = 0;     // of the chunk
    std::size_t in_begin = 0;  // where segment 0 lies, from the beginning of its place
    std::size_t out_begin = 0;
    std::size_t in_stride = 0;  // from segment to segment
    std::size_t out_stride = 0;
  };

  // One segment of one line.
  struct Piece {
    std::size_t bytes = 0;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    bool is_uncached = false;  // `out` is in no cache
    bool opens_out = false;
    bool opens_in = false;
    unsigned flags = kPlain;  // of the commit or send of a plain kSend
  };

  // All of a line's work in a brief operation, where no line has more than one segment: what is
  // computed for every segment otherwise is known beforehand. The first three forms are those of a
  // segment that travels with the header, the next three of one that follows it at once.
  enum class Form : std::uint8_t {
    kSend,
    kReceive,
    kReceiveReduce,
    kSendBehind,
    kReceiveBehind,
    kReceiveReduceBehind,
    kOther
  };
  struct Action {
    Form form = Form::kOther;
    std::uint8_t in_place = 0;
    std::uint8_t out_place = 0;
    unsigned flags = kPlain;  // of its commit or send
    std::size_t in_begin = 0;
    std::size_t out_begin = 0;
    std::size_t bytes = 0;
    std::size_t elements = 0;
    std::size_t step = 0;  // the line's index
    Line* line = nullptr;
    Channel* channel = nullptr;      // of all forms but the last
    Direction* direction = nullptr;  // "
  };

  // Making the table: executor/compile.cpp.
  void compile(std::span<Channel* const> channels);
  Line compile(const Step& step, std::span<Channel* const> channels);
  void begin(const void* in, void* out);
  void measure();
  void measure_lines();
  bool fits_into_slots() const;
  void find_opening(std::vector<Direction>& directions, std::size_t Line::*index,
                    bool Line::*opens);
  std::size_t begin_of(const ChunkRange& held) const;
  std::size_t bytes_of(const ChunkRange& held) const;
  std::size_t begin_of(const Line& line, const Operand& operand) const;

  // Memory in no cache: executor/non_temporal_stores.cpp.
  void find_uncached();
  void choose_stores();
  static void store(const Piece& piece, const std::byte* from);
  void reduce_non_temporal(const Line& line, const Piece& piece, std::byte* slot,
                           const std::byte* left, const std::byte* right) const;

  // What is to come: executor/preposted_receives.cpp.
  void post_expected_receives();
  bool expect(const Line& line, const Piece& piece);
  bool is_received(const Line& line, const Piece& piece) const;
  bool is_touched(std::span<const std::byte> memory) const;

  // Brief operations: executor/single_segment.cpp.
  void find_actions();
  Action action_of(Line& line, std::size_t step);
  bool advance_single_segment();
  bool act(const Action& action);
  bool act_as_line(const Action& action);
  bool send_single_segment(const Action& action);
  bool receive_single_segment(const Action& action);
  bool send_behind(const Action& action);
  bool receive_behind(const Action& action);
  void take_in(const Action& action, const std::byte* payload);
  void require_mine(const Action& action, const std::byte* opening);

  // Running it: executor.cpp.
  bool advance_in_turns();
  bool run(Line& line, std::size_t turn);
  bool find_piece(const Line& line, std::size_t turn, Piece& piece, std::size_t& segment) const;
  bool run(Line& line, const Piece& piece, std::size_t segment);
  bool advance_recorded();  // executor_recorded.cpp
  std::size_t bytes_in(const Line& line, std::size_t turn) const;
  std::uint16_t track() const;
  std::byte* address(const Operand& operand, std::size_t offset) const;
  bool send(Line& line, const Piece& piece, unsigned flags);
  bool receive(Line& line, const Piece& piece);
  bool receive_send(Line& line, const Piece& piece);
  bool receive_reduce(Line& line, const Piece& piece);
  bool receive_reduce_send(Line& line, const Piece& piece, std::byte* kept);
  bool receive_reduce_then_send(Line& line, Piece piece);
  bool send_kept(Line& line, const Piece& piece);
  bool is_inline(const Line& line, const Piece& piece) const;
  bool receive_reduce_answer(Line& line, const Piece& piece);
  bool receive_answer(Line& line, const Piece& piece);
  void answer_held(Line& line, const Piece& piece);
  void answer(Line& line);
  bool reduce_send(Line& line, const Piece& piece);
  void reduce_locally(const Line& line, const Piece& piece) const;
  void update(const Line& line, const Piece& piece, std::size_t segment) const;
  void reduce(const Line& line, const Piece& piece, void* out, void* kept,
              const std::byte* incoming) const;
  void reduce_scaled(const Line& line, const Piece& piece, void* out, void* kept,
                     const std::byte* incoming) const;
  bool scales(const Line& line) const { return multiply_ != nullptr && line.reads_input; }
  void take(const Line& line, const Piece& piece, std::byte* out) const;
  void combine(const Piece& piece, void* out, void* kept, const std::byte* left,
               const std::byte* right) const;

  std::byte* slot(Line& line, const Piece& piece);
  void commit(Line& line, const Piece& piece, unsigned flags);
  const std::byte* view(Line& line, const Piece& piece);
  std::byte* view_to_answer(Line& line, const Piece& piece);
  bool is_open(const Direction& direction) const { return direction.opened == operation_; }
  bool open_out(Direction& out, unsigned flags = kMore);
  bool open_in(Direction& in);
  CallHeader header_of(const Direction& direction) const;
  [[noreturn]] void refuse(int peer, const std::byte* opening, const CallHeader& mine) const;
  bool blocked_out(const Channel& to, std::size_t bytes);
  bool blocked_in(const Channel& from, std::size_t bytes);
  bool finish();
  bool is_drained();

  Schedule schedule_;
  const std::size_t cache_bytes_;
  const bool sends_header_alone_;
  std::vector<Direction> out_;
  std::vector<Direction> in_;
  std::vector<Line> lines_;
  std::vector<std::size_t> coalesced_order_;  // of lines_, where the operation is brief
  Layout layout_;
  std::vector<Part> parts_;
  std::vector<Held> held_;  // by rank
  struct alignas(kSegmentAlignment) Block {
    std::byte bytes[kSegmentAlignment];
  };
  std::vector<Block> scratch_;
  std::size_t scratches_ = 0;  // segments that scratch_ holds
  std::vector<std::size_t>
      scratch_index_;  // by chunk: 1 + that of its first slice, the others follow

  CallHeader header_;
  bool is_measured_ = false;         // lines hold the lengths of header_, split evenly
  bool is_plain_ = false;            // the operation is header and buffers, and nothing else
  bool is_single_segment_ = false;   // and runs as actions_
  bool is_opened_by_lines_ = false;  // every channel: no header goes alone at the end
  std::vector<Action> actions_;      // in the order in which they run; empty: not brief
  bool has_own_lengths_ = false;
  const Update* update_ = nullptr;
  ReduceKernel kernel_ = nullptr;
  const UserReduceOp* reducer_ = nullptr;  // instead of kernel_
  MultiplyKernel multiply_ = nullptr;      // of a scaled sum whose factor is not 1
  double scale_ = 1;
  int divisor_ = 1;
  bool sends_copies_ = false;
  // A message that fits into the slots of a channel that may leave others with the sender: it goes
  // into them, so that ranks that all send before they receive do not wait for each other.
  bool is_short_message_ = false;
  bool is_in_place_ = false;
  unsigned send_flags_ = kPlain;  // of plain sends
  std::size_t element_bytes_ = 4;
  std::size_t segment_bytes_ = kSegmentAlignment;
  std::size_t turns_ = 0;
  std::size_t in_bytes_ = 0;  // of the caller's buffers
  std::size_t out_bytes_ = 0;

  bool Line::*uncached_ = nullptr;  // says which lines write to memory in no cache; null: none does
  std::byte* places_[4] = {};       // of this operation, by Place; null: there is none
  std::uint64_t operation_ = 0;     // counts them
  std::size_t turn_ = 0;
  std::size_t step_ = 0;
  std::size_t action_ = 0;  // of a brief operation, instead of turn_
  Recorder* recorder_ = nullptr;
  std::size_t recorded_ = 0;         // the operation's number there
  Clock::time_point first_tried_{};  // the step at hand, where steps are recorded; zero: not yet
  bool is_half_done_ = false;        // the step at hand has received, and is yet to send
  bool waits_to_send_ = false;
  int awaited_peer_ = kNobody;
  std::size_t awaited_bytes_ = 0;
  std::uint64_t moves_ = 0;
  bool has_posting_channels_ = false;  // channels that want to be told what is to come
  std::uint64_t posted_at_ = 0;        // moves_ when it was looked ahead last
  std::vector<std::span<const std::byte>> touched_;  // by pieces that are yet to run
  std::uint64_t header_bytes_sent_ = 0;
  std::uint64_t header_bytes_received_ = 0;
};

// The language reads from const memory and writes to the other; one pointer serves.
inline void Executor::begin(const void* in, void* out) {
  is_in_place_ = in == out;
  sends_copies_ = is_short_message_ || kolo::sends_copies(schedule_, is_in_place_);
  places_[static_cast<std::size_t>(Place::kInput)] = static_cast<std::byte*>(const_cast<void*>(in));
  places_[static_cast<std::size_t>(Place::kOutput)] = static_cast<std::byte*>(out);
  ++operation_;
  turn_ = step_ = action_ = 0;
  is_half_done_ = false;
  uncached_ = nullptr;
  if (in_bytes_ + out_bytes_ > cache_bytes_) [[unlikely]]
    choose_stores();
}

inline bool Executor::start_again(const CallHeader& header, std::uint32_t sequence, const void* in,
                                  void* out) {
  if (!is_plain_ || !header_.is_like(header)) return false;
  header_.set_sequence(sequence);
  begin(in, out);
  return true;
}

// What `line` has to do in this turn; false where that is nothing.
inline bool Executor::find_piece(const Line& line, std::size_t turn, Piece& piece,
                                 std::size_t& segment) const {
  if (turn < line.stage) return false;
  const std::size_t round = turn - line.stage;
  segment = round * static_cast<std::size_t>(schedule_.slices) + line.slice;
  if (segment >= line.segments) return false;
  piece.bytes = std::min(segment_bytes_, line.bytes - segment * segment_bytes_);
  piece.in = address(line.in_operand, line.in_begin + segment * line.in_stride);
  piece.out = address(line.out_operand, line.out_begin + segment * line.out_stride);
  piece.is_uncached = uncached_ != nullptr && line.*uncached_;
  piece.opens_out = round == 0 && line.opens_out;
  piece.opens_in = round == 0 && line.opens_in;
  return true;
}

inline std::byte* Executor::address(const Operand& operand, std::size_t offset) const {
  std::byte* const place = places_[static_cast<std::size_t>(operand.place)];
  return place == nullptr ? nullptr : place + offset;
}

inline bool Executor::is_drained() {
  for (const Direction& out : out_) {
    if (!out.channel->is_drained()) return blocked_out(*out.channel, 0);
  }
  return true;
}

}  // namespace kolo
