// The schedule language. An algorithm is a pure function from (rank, size, parameters) to a
// schedule: a short program of steps.
//
// Words. The data of an operation is split into *chunks* (the share of a rank or a server). A
// *step* streams one chunk: to a peer, from a peer, or both. A chunk is cut into *segments*. The
// program is a loop. Each iteration of the loop is a *turn*: in turn t every step works on segment
// (t - stage) * slices + slice of its chunk, if that segment exists.
//
// *Stages* and *slices* are two ways to hide latency. A step of stage 0 runs one turn ahead of a
// step of stage 1. So it can send a segment while the answer to the previous segment is still on
// its way. With two slices the program has every step twice, for even and odd segments, and works
// on one while the other travels.
//
// The steps of a turn run in order. So the order of segments on every channel is fixed and both
// ends know it; segments carry no tag.
//
// The length of a program does not depend on the count: more segments mean more turns, not more
// steps. It is O(size) as a rule (O(size log size) for Bruck's all-to-all).
//
// The executor runs a schedule, the checker proves it for all ranks, and the simulator predicts its
// time. Compare NCCL's primitives (recvReduceCopySend in a loop over slices) and libNBC's
// schedules. libNBC's rounds are barriers; here no step waits for a round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0 {

// The action of a step on one segment. A step reads the operand `in` and writes the operand `out`,
// if its kind has them.
enum class StepKind : std::uint8_t {
  kSend,                   // to <- in
  kReceive,                // out = from
  kReceiveSend,            // out = to <- from; without an `out` it is forwarded and not kept
  kReceiveReduce,          // out = in op from
  kReceiveReduceSend,      // to <- in op from; the result is not kept
  kReceiveReduceCopySend,  // out = to <- in op from
  // A peer can *answer* a segment in place: it overwrites the sender's segment with the result.
  kSendForAnswer,        // to <- in; a later kReceiveAnswer of the same or a higher stage reads it
  kReceiveReduceAnswer,  // out = from = in op from; answers at once
  kAnswer,               // answers the held segment of `from` with in
  kReceiveAnswer,        // out = to's answer
  kCopy,                 // out = in
  kReduce,               // out = in op out
  kReduceSend,           // to <- in op out; out is not changed
  kUpdate,               // the caller's update of in (= out) in place: a server's optimizer
};

std::string_view to_string(StepKind kind);

// Kinds that put a segment on the channel to `to`, and kinds that take one from the channel of
// `from`. Answers are not segments.
constexpr bool sends_segment(StepKind kind) {
  return kind == StepKind::kSend || kind == StepKind::kReceiveSend ||
         kind == StepKind::kReceiveReduceSend || kind == StepKind::kReceiveReduceCopySend ||
         kind == StepKind::kReduceSend || kind == StepKind::kSendForAnswer;
}
constexpr bool receives_segment(StepKind kind) {
  return kind == StepKind::kReceive || kind == StepKind::kReceiveSend ||
         kind == StepKind::kReceiveReduce || kind == StepKind::kReceiveReduceSend ||
         kind == StepKind::kReceiveReduceCopySend || kind == StepKind::kReceiveReduceAnswer;
}

// Location of an operand. kInput and kOutput are the caller's buffers and may be the same memory.
// kScratch belongs to the executor: one segment per (chunk, slice), valid within a turn.
enum class Place : std::uint8_t { kNone, kInput, kOutput, kScratch };

struct Operand {
  Place place = Place::kNone;
  std::uint16_t chunk = 0;
};

inline constexpr std::int16_t kNobody = -1;

struct Step {
  StepKind kind = StepKind::kSend;
  std::uint8_t stage = 0;
  std::uint8_t slice = 0;
  bool is_final = false;   // the reduction is complete after this step; an average divides here
  bool is_held = false;    // kReceive, kReceiveReduce: kept for a later kAnswer of this turn
  bool is_copied = false;  // kSend: a copy is sent, so the memory may be written at once
  // Reductions: `in` is the right operand, not the left (from op in, out op in). Partners that both
  // reduce the exchanged data need it to get the same bits: min of +0 and -0 depends on the order.
  bool is_in_last = false;
  std::uint16_t chunk = 0;    // the chunk that the step streams; gives the length
  std::int16_t to = kNobody;  // ranks
  std::int16_t from = kNobody;
  Operand in;
  Operand out;
};

// The operations. The comments define their meaning for the executor and the checker.
enum class Collective : std::uint8_t {
  kAllReduce,      // input: count at every rank; output: the reduction, count at every rank
  kReduceScatter,  // input: count at every rank; output: chunk r of the reduction at rank r
  kAllGather,      // input: chunk r at rank r; output: count at every rank
  kBroadcast,      // input: count at the root; output: count at every rank
  kBarrier,        // no rank leaves before all ranks have entered; no data
  kPushPull,  // as all_reduce over the workers' inputs, through servers, which may update the sums
  kPush,      // its first half; output: chunk i of the reduction, updated, at server i
  kPull,      // its second half; input: chunk i at server i; output: count at every worker
  kReduce,    // input: count at every rank; output: the reduction, count at the root
  kGather,    // input: chunk r at rank r; output: count at the root
  kScatter,   // input: count at the root; output: chunk r at rank r
  kAllToAll,  // 2 n chunks; a rank sends chunk p to rank p, and receives chunk n + p from rank p
  kScan,      // input: count; output: the reduction over ranks 0 to this one
  kExclusiveScan,  // the reduction over the ranks before this one; rank 0 has no output
  kMessage,        // the output of one rank is the input of another; other ranks take no part
};

std::string_view to_string(Collective collective);

// Collectives that combine elements of several ranks.
constexpr bool is_reduction(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kPushPull || collective == Collective::kPush ||
         collective == Collective::kReduce || collective == Collective::kScan ||
         collective == Collective::kExclusiveScan;
}

// Collectives of a parameter server.
constexpr bool has_servers(Collective collective) {
  return collective == Collective::kPushPull || collective == Collective::kPush ||
         collective == Collective::kPull;
}

// Collectives in which one rank sends or receives all the data.
constexpr bool has_root(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter;
}

// A range of chunks: the packed content of a buffer.
struct ChunkRange {
  int first = 0;
  int count = 0;
};

// The program of one rank. The operation defines the lengths of the chunks; as a rule chunk c of
// `chunks` holds the elements from chunk_begin(count, chunks, c) to chunk_begin(count, chunks, c +
// 1).
struct Schedule {
  Collective collective = Collective::kBarrier;
  std::string algorithm;
  int rank = 0;
  int size = 1;
  int chunks = 1;
  int slices = 1;         // segments of a chunk per turn
  int contributions = 1;  // inputs of a complete reduction: the divisor of an average
  int spans = 1;          // how often the chunks cover the count: twice in all_to_all
  ChunkRange input;       // the chunks in the caller's buffers
  ChunkRange output;
  // Every rank sends only from the callers' memory, partial sums included, and nothing there is
  // overwritten before it has left. So channels without copies need no slots.
  bool leaves_from_memory = false;
  std::vector<Step> steps;
};

// Whether kSend always sends a copy. True in place if the chunks that arrive overwrite the chunks
// that are sent.
constexpr bool sends_copies(const Schedule& schedule, bool is_in_place) {
  return is_in_place && schedule.spans > 1;
}

// The first element of chunk `chunk` of `count` elements in `chunks` equal parts. The first count %
// chunks parts are one element longer.
constexpr std::size_t chunk_begin(std::size_t count, int chunks, int chunk) {
  const auto n = static_cast<std::size_t>(chunks);
  const auto c = static_cast<std::size_t>(chunk);
  return c * (count / n) + (c < count % n ? c : count % n);
}

constexpr std::size_t chunk_count(std::size_t count, int chunks, int chunk) {
  return chunk_begin(count, chunks, chunk + 1) - chunk_begin(count, chunks, chunk);
}

// Inputs of an algorithm: the ranks, and the properties of their channels.
struct ScheduleRequest {
  int rank = 0;
  int size = 1;
  int root = 0;             // for collectives with a root; of a message: the sender
  int peer = 0;             // of a message: the receiver
  bool can_answer = false;  // every channel has Capabilities::can_answer
  // The host of each rank; hosts are numbered in the order of their first ranks. Empty: one host.
  std::span<const int> hosts = {};
};

// Human-readable text of a schedule, one line per step.
std::string describe(const Schedule& schedule);

}  // namespace kolo::inline v0
