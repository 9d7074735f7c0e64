// The executor: runs one rank's schedule over channels.
//
// A schedule is compiled once into a flat table of lines (channel pointers, places, stages). An
// operation binds the table to its buffers and calls advance() until it returns true. advance()
// runs until a channel cannot continue, and returns. Its whole state is the turn, the step, and
// which channels are open. It uses no allocation, lock or clock. Its cost is proportional to the
// segments.
//
// Zero copy. send() may leave the caller's memory in use until the channel is drained. If the
// schedule later overwrites memory that it has sent, the step sends a copy from a slot instead
// (schedule/buffer_reuse.h). So does every send of an all_to_all in place. A partial sum that is
// stored in memory is sent from there, by the same rule.
//
// Lending. A segment that is sent for an answer is *lent* if input and output are the same memory
// and no other step touches it. A peer that can reach the memory (Communicator::allocate) writes
// the answer there, and nothing is copied.
//
// A scaled sum scales the caller's input where it is read, and nothing else. The checker proves
// that each contribution is read once. A send of input is then a scaled copy in a slot.
//
// Threading: only the engine's driver calls it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "collectives/element.h"
#include "collectives/executor/call_header.h"
#include "collectives/schedule.h"
#include "collectives/schedule/layout.h"
#include "collectives/schedule/turns.h"
#include "collectives/user_reduce_op.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

class PrepostedReceives;
class Recorder;

// Called by step kUpdate with the index of the first element, and the elements.
using Update = std::function<void(std::size_t first, std::span<std::byte> sums)>;

// Arguments of one run of a schedule.
struct Binding {
  const void* in = nullptr;
  void* out = nullptr;
  CallHeader header;               // gives count, type, op and segment length
  const Update* update = nullptr;  // null or empty: no update
  // Elements of every chunk; empty: the header's count, split evenly.
  std::span<const std::size_t> lengths = {};
  // The lengths belong to this rank alone: each rank knows only what it exchanges with each peer.
  // The count in a header is then that of its channel.
  bool has_own_lengths = false;
  const UserReduceOp* reducer = nullptr;  // of a user function
  double scale = 1;                       // of kScaledSum: this rank's factor
  Recorder* recorder = nullptr;           // records every step; null: off
};

// Bytes per segment for chunks of `chunk_bytes`: `preferred`, or less (at least `shortest`), so
// that a chunk has several turns to overlap. A multiple of kSegmentAlignment. All ranks compute the
// same length, since all arguments are the same.
std::size_t choose_segment_bytes(std::size_t chunk_bytes, std::size_t preferred,
                                 std::size_t shortest);

class Executor {
 public:
  // `channels`: by rank, null for this rank; borrowed. `cache_bytes`: this rank's share of the
  // last-level cache. Operations on more memory use non-temporal stores
  // (executor/non_temporal_stores.cpp). `sends_header_alone`: a header carries no payload, because
  // the peer's host may read the header while its device's stream reads the payload. `memory`: of
  // partial results; borrowed.
  Executor(Schedule schedule, std::span<Channel* const> channels,
           std::size_t cache_bytes = std::numeric_limits<std::size_t>::max(),
           bool sends_header_alone = false,
           std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  const Schedule& schedule() const { return schedule_; }

  // Begins an operation. The previous one must be done; otherwise it is dropped.
  void start(const Binding& binding);

  // Begins an operation that differs from the previous one only in its buffers and its sequence.
  // False if it differs in more: nothing was done, and the caller must use start().
  bool start_again(const CallHeader& header, std::uint32_t sequence, const void* in, void* out);

  // Advances as far as possible. True once the operation is done: the results are in place, and no
  // memory of the caller is in use. Throws kolo::Error from the channels, and kMismatch if a peer
  // sends another header.
  bool advance() { return is_single_segment_ ? advance_single_segment() : advance_in_turns(); }

  // Compares headers that have arrived but are not needed yet. The driver calls it now and then
  // while this operation is blocked.
  void check_arrivals();

  // True if the schedule receives on `channel`.
  bool receives_on(const Channel& channel) const {
    for (const Direction& in : in_) {
      if (in.channel == &channel) return true;
    }
    return false;
  }

  // Incremented for every segment handled, so that the caller sees if advance() moved anything.
  std::uint64_t moves() const { return moves_; }

  // Header bytes in all operations so far. The channels count them as bytes sent and received too.
  std::uint64_t header_bytes_sent() const { return header_bytes_sent_; }
  std::uint64_t header_bytes_received() const { return header_bytes_received_; }

  // The peer that advance() waits for, and a text such as "receive of 4.0 MiB from rank 2".
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
    std::uint64_t opened = 0;  // last operation whose header was sent, or received and matched
    std::size_t payload = 0;   // payload that travels in the header's segment
    std::size_t elements = 0;  // of the operation, on this channel
    Line* first = nullptr;     // its segment comes first; null: no segment
    PrepostedReceives* expecting = nullptr;  // the channel, if it supports this
    std::size_t ahead = 0;         // segments that post_expected_receives() has found so far
    bool is_posting_done = false;  // no more can be posted
  };

  // Position and length of a chunk in this operation.
  struct Part {
    std::size_t begin = 0;
    std::size_t bytes = 0;
    std::size_t segments = 0;
  };

  // A received segment that is kept open for an answer.
  struct Held {
    std::byte* bytes = nullptr;
    std::size_t header_bytes = 0;  // travel back with the answer
  };

  // A step, ready to run: first what the schedule defines, then what the operation defines.
  struct Line {
    StepKind kind = StepKind::kSend;
    std::uint8_t stage = 0;
    std::uint8_t slice = 0;
    bool is_final = false;
    bool is_held = false;
    bool is_in_last = false;
    bool reads_input = false;  // scaled in a scaled sum
    bool must_copy = false;    // a send that must not leave the memory in use
    bool is_direct = false;    // receives into memory and sends from there; channels copy nothing
    bool may_lend = false;     // kSendForAnswer: the answer may be written into the sent memory
    // It overwrites memory of the caller that no other step touches:
    bool is_uncached_out_of_place = false;  // if input and output are different memory
    bool is_uncached_in_place = false;      // if they are the same memory
    bool opens_out = false;                 // its segment comes first on `out_index`, or `in_index`
    bool opens_in = false;
    std::uint16_t chunk = 0;
    std::size_t question = 0;  // kReceiveAnswer: the line that sent the answered segment
    Operand in_operand;
    Operand out_operand;
    std::size_t out_index = 0;  // into out_; in_index into in_
    std::size_t in_index = 0;
    Channel* to = nullptr;
    Channel* from = nullptr;
    Held* held = nullptr;

    std::size_t segments = 0;  // of the chunk
    std::size_t bytes = 0;     // of the chunk
    std::size_t in_begin = 0;  // offset of segment 0 in its place
    std::size_t out_begin = 0;
    std::size_t in_stride = 0;  // from a segment to the next
    std::size_t out_stride = 0;
  };

  // One segment of one line.
  struct Piece {
    std::size_t bytes = 0;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    bool is_uncached = false;  // use non-temporal stores for `out`
    bool opens_out = false;
    bool opens_in = false;
    unsigned flags = kPlain;  // for the commit or send of a kSend
  };

  // A line of a single-segment operation, in which no line has more than one segment. All that is
  // otherwise computed per segment is computed beforehand. In the first three forms the segment
  // travels with the header; in the next three it follows the header at once.
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
    unsigned flags = kPlain;  // for its commit or send
    std::size_t in_begin = 0;
    std::size_t out_begin = 0;
    std::size_t bytes = 0;
    std::size_t elements = 0;
    std::size_t step = 0;  // index of the line
    Line* line = nullptr;
    Channel* channel = nullptr;  // for all forms except kOther
    Direction* direction = nullptr;
  };

  // Compiling the table: executor/compile.cpp.
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

  // Non-temporal stores: executor/non_temporal_stores.cpp.
  void find_uncached();
  void choose_stores();
  static void store(const Piece& piece, const std::byte* from);
  void reduce_non_temporal(const Line& line, const Piece& piece, std::byte* slot,
                           const std::byte* left, const std::byte* right) const;

  // Preposted receives: executor/preposted_receives.cpp.
  // Called when a step cannot move yet. Returns false.
  bool prepare_to_wait() {
    if (has_posting_channels_ && posted_at_ != moves_) [[unlikely]]
      post_expected_receives();
    return false;
  }
  void post_expected_receives();
  bool expect(const Line& line, const Piece& piece);
  bool is_received(const Line& line, const Piece& piece) const;
  bool is_touched(std::span<const std::byte> memory) const;

  // Single-segment operations: executor/single_segment.cpp.
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

  // Running the table: executor.cpp.
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
  std::vector<std::size_t> coalesced_order_;  // of lines_, for single-segment operations
  Layout layout_;
  std::vector<Part> parts_;
  std::vector<Held> held_;  // by rank
  struct alignas(kSegmentAlignment) Block {
    std::byte bytes[kSegmentAlignment];
  };
  std::pmr::vector<Block> scratch_;
  std::size_t scratches_ = 0;               // capacity of scratch_ in segments
  std::vector<std::size_t> scratch_index_;  // by chunk: 1 + index of its first slice; 0: none

  CallHeader header_;
  bool is_measured_ = false;         // lines match header_, with evenly split lengths
  bool is_plain_ = false;            // the operation has a header and buffers only
  bool is_single_segment_ = false;   // it also runs as actions_
  bool is_opened_by_lines_ = false;  // every channel has a segment: finish() sends no header
  std::vector<Action> actions_;      // in order; empty: not a single-segment operation
  bool has_own_lengths_ = false;
  const Update* update_ = nullptr;
  ReduceKernel kernel_ = nullptr;
  const UserReduceOp* reducer_ = nullptr;  // replaces kernel_
  MultiplyKernel multiply_ = nullptr;      // of a scaled sum with a factor other than 1
  double scale_ = 1;
  int divisor_ = 1;
  bool sends_copies_ = false;
  // A message that fits into the slots of a channel whose send() may leave long messages with the
  // sender. It is copied into slots, so that ranks which all send before they receive do not wait
  // for each other.
  bool is_short_message_ = false;
  bool is_in_place_ = false;
  unsigned send_flags_ = kPlain;  // for kSend
  std::size_t element_bytes_ = 4;
  std::size_t segment_bytes_ = kSegmentAlignment;
  std::size_t turns_ = 0;
  std::size_t in_bytes_ = 0;  // of the caller's buffers
  std::size_t out_bytes_ = 0;

  bool Line::*uncached_ = nullptr;  // flag of the lines with non-temporal stores; null: none
  std::byte* places_[4] = {};       // buffers of this operation, by Place; null: none
  std::uint64_t operation_ = 0;     // number of this operation
  std::size_t turn_ = 0;
  std::size_t step_ = 0;
  std::size_t action_ = 0;  // replaces turn_ in a single-segment operation
  Recorder* recorder_ = nullptr;
  std::size_t recorded_ = 0;         // number of the operation in the recorder
  Clock::time_point first_tried_{};  // first try of the current step, if recorded; zero: none
  bool is_half_done_ = false;        // the current step has received, but not sent yet
  bool waits_to_send_ = false;
  int awaited_peer_ = kNobody;
  std::size_t awaited_bytes_ = 0;
  std::uint64_t moves_ = 0;
  bool has_posting_channels_ = false;                // some channels accept preposted receives
  std::uint64_t posted_at_ = 0;                      // moves_ at the last post_expected_receives()
  std::vector<std::span<const std::byte>> touched_;  // memory of pieces that have not run
  std::uint64_t header_bytes_sent_ = 0;
  std::uint64_t header_bytes_received_ = 0;
};

// Schedules read the input and write the output only; one pointer type serves both.
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

// The segment of `line` in this turn; false if it has none.
inline bool Executor::find_piece(const Line& line, std::size_t turn, Piece& piece,
                                 std::size_t& segment) const {
  if (turn < line.stage) return false;
  segment = segment_in_turn(turn, line.stage, line.slice, schedule_.slices);
  if (segment >= line.segments) return false;
  piece.bytes = std::min(segment_bytes_, line.bytes - segment * segment_bytes_);
  piece.in = address(line.in_operand, line.in_begin + segment * line.in_stride);
  piece.out = address(line.out_operand, line.out_begin + segment * line.out_stride);
  piece.is_uncached = uncached_ != nullptr && line.*uncached_;
  piece.opens_out = turn == line.stage && line.opens_out;
  piece.opens_in = turn == line.stage && line.opens_in;
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

}  // namespace kolo::inline v0
