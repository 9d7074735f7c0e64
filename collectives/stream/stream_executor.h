// The stream executor: gives one rank's schedule to a device stream.
//
// The same text that executor.h runs on the host becomes work on a stream, step by step: where the
// host's executor waits for credit or a segment, the stream does, and the host goes on. A segment
// that fits into a slot goes through one: then the host waits for nobody. A longer one goes
// straight from memory to memory, and its receiver must know where it lies: advance() says "not
// now" until the peer has given its send to its stream, not until that has happened.
//
// A schedule makes no more of the channels' credit than on the host, and a stream does its work in
// order; so what the checker proves of a program, deadlock among it, holds here as well.
//
// Long segments are for schedules whose sends all leave from memory (Schedule::leaves_from_memory):
// the others copy into slots, and are cut so that they fit.
//
// No kernel waits for another rank: waits are the stream's own (cuStreamWaitValue), so ranks that
// share one device by time slices do not starve each other.
//
// Source: NCCL enqueues one kernel per operation, which spins; this is nearer to MSCCL's and
// GPUDirect Async's lowering of a schedule to memory operations of the stream.
//
// Threading: one thread at a time, the one that drives the transport.
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

namespace kolo {

class Recorder;

// What an operation on a stream runs a schedule on.
struct StreamBinding {
  void* stream = nullptr;
  const void* in = nullptr;  // device memory, as `out`
  void* out = nullptr;
  std::size_t count = 0;  // elements, split evenly, where there are no lengths
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::span<const std::size_t> lengths = {};  // elements of every chunk
  double scale = 1;                           // of a scaled sum: this rank's factor
  // Of segments, a multiple of kSegmentAlignment; 0: as long as the channels' streams like them.
  // The same on all ranks.
  std::size_t segment_bytes = 0;
  // Called once for each peer that is received from: before its first segment is, or at the end
  // where it sends none. False: not now. Empty: nothing comes before the segments.
  std::function<bool(int peer)> before_receiving = {};
  // By rank: what goes to it and comes from it, counted as it is given. Empty: nobody counts.
  std::span<ChannelStatistics> counts = {};
  Recorder* recorder = nullptr;  // leaves word of every step that is given; null: of none
};

class StreamExecutor {
 public:
  // `channels`: by rank, null for this rank itself; all with the same length of slots. `math` and
  // they are borrowed. std::invalid_argument: a schedule with answers, which streams have not, or
  // with a caller's update, which runs on the host.
  StreamExecutor(Schedule schedule, std::span<StreamChannel* const> channels, DeviceMath& math);
  // Waits for the device where the schedule has scratch.
  ~StreamExecutor();
  StreamExecutor(const StreamExecutor&) = delete;
  StreamExecutor& operator=(const StreamExecutor&) = delete;

  const Schedule& schedule() const { return schedule_; }

  // Begins an operation; the one before must have been given to its stream whole. Error kSystem
  // where the device has no memory for scratch. Never waits for the device: scratch that is
  // outgrown may still be read, and stays until the end.
  void start(const StreamBinding& binding);

  // Gives the stream as much as can be given; true once that is all. What is given later to the
  // same stream finds the results in place and the caller's memory its own. kolo::Error: from the
  // channels; the operation is then given in part, and the channels are dead.
  bool advance();

  // Grows with every segment given.
  std::uint64_t moves() const { return moves_; }

  // Whom advance() waits for, and in words: "rank 2 to give its part of ring step 3 to its stream".
  int awaited_peer() const { return awaited_peer_; }
  std::string describe_wait() const;

  // "ring step 3 of 10".
  std::string describe_location() const;

  // Whom its schedule sends to, and receives from; each once.
  std::span<const int> sends_to() const { return sends_to_; }
  std::span<const int> receives_from() const { return receives_from_; }
  // Elements of the operation begun last that go to a peer, or come from it.
  std::size_t elements_to(int peer) const;
  std::size_t elements_from(int peer) const;

  // Of the operation that was begun last.
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
    std::size_t in_begin = 0;  // where segment 0 lies, from the beginning of its place
    std::size_t out_begin = 0;
  };

  // One segment of one line.
  struct Piece {
    std::size_t bytes = 0;
    std::size_t count = 0;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    bool is_straight = false;  // longer than a slot
  };

  void compile(std::span<StreamChannel* const> channels);
  std::size_t choose_segment_bytes() const;
  void measure();
  void have_scratch();
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
  bool send_kept(const Line& line, const Piece& piece);
  bool reduce_send(const Line& line, const Piece& piece);
  std::byte* reserve(const Line& line, const Piece& piece);
  const std::byte* view(const Line& line, const Piece& piece);
  void take(const Line& line, const Piece& piece, std::byte* out);
  void reduce(const Line& line, const Piece& piece, void* out, void* copy,
              const std::byte* incoming);
  void count(const Line& line, const Piece& piece);
  bool wait_for(int peer);
  bool may_receive(int peer);
  bool scales(const Line& line) const {
    return binding_.op == ReduceOp::kScaledSum && binding_.scale != 1 &&
           line.step.in.place == Place::kInput;
  }
  bool finish();

  Schedule schedule_;
  DeviceMath& math_;
  std::vector<StreamChannel*> used_;  // each once
  std::vector<int> sends_to_;
  std::vector<int> receives_from_;
  std::vector<Line> lines_;
  std::vector<Part> parts_;
  Layout layout_;
  std::vector<std::size_t> scratch_index_;  // by chunk: 1 + that of its first slice
  std::size_t scratches_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t straight_bytes_ = 0;

  StreamBinding binding_;
  std::size_t element_bytes_ = 4;
  std::size_t segment_bytes_ = 0;
  std::size_t turns_ = 0;
  std::byte* places_[4] = {};
  std::vector<std::byte*> scratches_made_;  // of the device; the last one is in use
  std::size_t scratch_bytes_ = 0;
  bool is_begun_ = false;
  std::vector<int> headerless_peers_;  // peers that before_receiving has not been called for
  bool is_half_done_ = false;          // the step at hand has received, and is yet to send
  std::size_t turn_ = 0;
  std::size_t step_ = 0;
  std::uint64_t moves_ = 0;
  int awaited_peer_ = kNobody;
  Clock::time_point first_tried_{};  // the step at hand, where somebody wants to know
};

}  // namespace kolo
