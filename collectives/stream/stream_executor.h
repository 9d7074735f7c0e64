// Stream executor: enqueues one rank's schedule on a device stream.
//
// It runs the same schedules as executor.h, step by step, as work on a stream. Where the host's
// executor waits for credit or a segment, the stream waits, and the host continues. A segment that
// fits into a slot goes through a slot, and the host waits for no peer. A longer segment goes from
// memory to memory, and its receiver must know its address. Then advance() returns false until the
// peer's host has enqueued the send; it does not wait until the send has run.
//
// A schedule uses no more credit than on the host, and a stream works in order. So the checker's
// proofs, including freedom from deadlock, hold here too.
//
// Long segments need schedules whose sends all leave from memory (Schedule::leaves_from_memory).
// Other schedules copy into slots, so their segments are cut to fit.
//
// Two ranks that share a device reduce for each other: each stores its half of the sums in its own
// memory and in the peer's (kReceiveReduceAnswer). Both together move 4 n bytes of an all-reduce,
// and not 5 n, with half of the context switches.
//
// No kernel waits for another rank: the stream itself waits (cuStreamBatchMemOp). So ranks that
// share one device by time slices do not starve each other.
//
// Compare: NCCL enqueues one kernel per operation, which spins. This is closer to MSCCL and to
// GPUDirect Async, which lower a schedule to memory operations of the stream.
//
// Threading: only the engine's driver calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collectives/device_math.h"
#include "collectives/element.h"
#include "collectives/schedule.h"
#include "collectives/schedule/layout.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

class Recorder;

// Arguments of one run of a schedule on a stream.
struct StreamBinding {
  void* stream = nullptr;
  const void* in = nullptr;  // `in` and `out`: device memory
  void* out = nullptr;
  std::size_t count = 0;  // elements, split evenly unless there are lengths
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::span<const std::size_t> lengths = {};  // elements of every chunk
  double scale = 1;                           // of kScaledSum: this rank's factor
  // Segment length, a multiple of kSegmentAlignment, the same on all ranks. 0: the channels'
  // preference.
  std::size_t segment_bytes = 0;
  // Called once for each peer that sends to this rank: before its first segment, or at the end if
  // it sends none. False: try again later. Empty: nothing comes before the segments.
  std::function<bool(int peer)> before_receiving = {};
  // By rank: payload to and from it, counted when enqueued. Empty: not counted.
  std::span<ChannelStatistics> counts = {};
  Recorder* recorder = nullptr;  // records every enqueued step; null: off
};

class StreamExecutor {
 public:
  // `channels`: by rank, null for this rank; all with slots of one length. `channels` and `math`
  // are borrowed. Throws std::invalid_argument for a schedule with answers that these channels
  // do not support (StreamChannel::answers), with held segments, or with a caller's update, which
  // runs on the host.
  StreamExecutor(Schedule schedule, std::span<StreamChannel* const> channels, DeviceMath& math);
  // Waits for the device if the schedule has scratch.
  ~StreamExecutor();
  StreamExecutor(const StreamExecutor&) = delete;
  StreamExecutor& operator=(const StreamExecutor&) = delete;

  const Schedule& schedule() const { return schedule_; }

  // Begins an operation; the previous one must be enqueued completely.
  void start(const StreamBinding& binding);

  // The operation needs more scratch than there is. advance() allocates it, or the caller, while no
  // stream waits: the allocation may wait for all streams of the device. Error kSystem if there is
  // not enough memory. Outgrown scratch may still be in use, so it is kept until the end.
  bool lacks_scratch() const { return needed_scratch() > scratch_bytes_; }
  void allocate_scratch();

  // Enqueues as much as possible; true once all is enqueued. Work enqueued later on the same stream
  // finds the results in place, and may use the caller's memory. Throws kolo::Error from the
  // channels; the operation is then enqueued in part, and the channels are dead.
  bool advance();

  // Incremented for every segment enqueued.
  std::uint64_t moves() const { return moves_; }

  // The peer that advance() waits for, and a text such as "rank 2 to enqueue its part of ring step
  // 3".
  int awaited_peer() const { return awaited_peer_; }
  std::string describe_wait() const;

  // "ring step 3 of 10".
  std::string describe_location() const;

  // Peers that the schedule sends to, and receives from; each once.
  std::span<const int> sends_to() const { return sends_to_; }
  std::span<const int> receives_from() const { return receives_from_; }
  // Elements of the current operation that go to `peer`, or come from it.
  std::size_t elements_to(int peer) const;
  std::size_t elements_from(int peer) const;

  // Of the current operation.
  std::size_t segment_bytes() const { return segment_bytes_; }

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t bytes = 0;
    std::size_t segments = 0;
  };

  // A step, ready to run.
  struct Line {
    Step step;
    StreamChannel* to = nullptr;
    StreamChannel* from = nullptr;
    std::size_t in_begin = 0;  // offset of segment 0 in its place
    std::size_t out_begin = 0;
  };

  // One segment of one line.
  struct Piece {
    std::size_t bytes = 0;
    std::size_t count = 0;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    bool is_straight = false;  // longer than a slot: from memory to memory
  };

  void compile(std::span<StreamChannel* const> channels);
  Operand answer_to(const Step& asking) const;
  std::size_t choose_segment_bytes() const;
  void measure();
  std::size_t needed_scratch() const;
  std::size_t longest_segment() const;
  std::size_t begin_of(const ChunkRange& held) const;
  std::size_t begin_of(const Line& line, const Operand& operand) const;
  std::byte* address(const Operand& operand, std::size_t begin, std::size_t segment) const;

  bool find_piece(const Line& line, std::size_t turn, Piece& piece) const;
  bool give(const Line& line, const Piece& piece);
  bool advance_recorded();
  bool run(const Line& line, const Piece& piece);
  bool send(const Line& line, const Piece& piece);
  bool receive(const Line& line, const Piece& piece);
  bool receive_send(const Line& line, const Piece& piece);
  bool receive_reduce(const Line& line, const Piece& piece);
  bool receive_reduce_send(const Line& line, const Piece& piece);
  bool receive_reduce_answer(const Line& line, const Piece& piece);
  bool send_kept(StreamChannel& to, int peer, const Piece& piece);
  bool reduce_send(const Line& line, const Piece& piece);
  std::byte* reserve(const Line& line, const Piece& piece);
  const std::byte* view(const Line& line, const Piece& piece);
  void take(const Line& line, const Piece& piece, std::byte* out);
  void reduce(const Line& line, const Piece& piece, void* out, void* copy,
              const std::byte* incoming);
  void copy(std::byte* out, const std::byte* from, std::size_t bytes);
  void count(const Line& line, const Piece& piece);
  void flush();
  bool wait_for(int peer);
  bool may_receive(int peer);
  bool scales(const Line& line) const {
    return binding_.op == ReduceOp::kScaledSum && binding_.scale != 1 &&
           line.step.in.place == Place::kInput;
  }
  bool finish();

  Schedule schedule_;
  DeviceMath& math_;
  std::vector<StreamChannel*> used_;  // each channel once
  std::vector<int> sends_to_;
  std::vector<int> receives_from_;
  std::vector<Line> lines_;
  std::vector<Part> parts_;
  Layout layout_;
  std::vector<std::size_t> scratch_index_;  // by chunk: 1 + index of its first slice; 0: none
  std::size_t scratches_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t straight_bytes_ = 0;
  bool has_answers_ = false;

  StreamBinding binding_;
  std::size_t element_bytes_ = 4;
  std::size_t segment_bytes_ = 0;
  std::size_t turns_ = 0;
  std::byte* places_[4] = {};
  std::vector<std::byte*> scratches_made_;  // device memory; the last one is in use
  std::size_t scratch_bytes_ = 0;
  bool is_begun_ = false;
  std::vector<int> headerless_peers_;  // before_receiving has not succeeded for them
  bool is_half_done_ = false;          // the current step has received, but not sent yet
  std::size_t turn_ = 0;
  std::size_t step_ = 0;
  std::uint64_t moves_ = 0;
  int awaited_peer_ = kNobody;
  Clock::time_point first_tried_{};  // first try of the current step, if recorded
};

}  // namespace kolo::inline v0
