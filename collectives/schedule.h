// The schedule language: an algorithm is a pure function from (rank, size, parameters) to a short
// program of steps.
//
// Words. The data of an operation is split into *chunks* (a rank's or a server's share). A *step*
// streams one chunk: to a peer, from a peer, or both. A chunk is cut into *segments*; the program
// is a loop whose *turn* t lets every step work on segment (t - stage) * slices + slice of its
// chunk (nothing, where that segment does not exist). Stages and slices are two ways to hide
// latency: a step of stage 0 runs one turn ahead of a step of stage 1, so a send can be under way
// while the answer to the one before it is still awaited; with two slices the program has every
// step twice, for even and odd segments, and works on one while the other travels. Steps of a turn
// run in order; so the order of segments on every channel is fixed, the same on both ends, and
// known without a word on the wire.
//
// The length of a program is O(size) as a rule (Bruck's all-to-all has O(size log size)), whatever
// the bytes: segments are turns, not steps. One program serves every count.
//
// From one text come the executor, the checker that proves it for all ranks, and whatever else
// wants to know who sends what when. Compare NCCL's primitives (recvReduceCopySend in a loop over
// slices) and libNBC's schedules, whose rounds are barriers: here nothing waits for a round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

// What one step does with one segment. `in` is the operand that it reads, `out` the one that it
// writes, where it does.
enum class StepKind : std::uint8_t {
  kSend,                   // to <- in
  kReceive,                // out = from
  kReceiveSend,            // out = to <- from; without an `out` it is passed on and not kept
  kReceiveReduce,          // out = in op from
  kReceiveReduceSend,      // to <- in op from                  (not kept)
  kReceiveReduceCopySend,  // out = to <- in op from
  kSendForAnswer,        // to <- in; overwritten there; a kReceiveAnswer of no lower stage reads it
  kReceiveReduceAnswer,  // out = from = in op from, and back it goes
  kAnswer,               // the held segment from `from` = in, and back it goes
  kReceiveAnswer,        // out = to's answer
  kCopy,                 // out = in
  kReduce,               // out = in op out
  kReduceSend,           // to <- in op out                      (out stays as it is)
  kUpdate,               // the caller's hook works on in (= out) in place: a server's optimizer
};

std::string_view to_string(StepKind kind);

// Kinds that put a segment on the channel to `to`, and kinds that take one off that from `from`.
// (Answers are no segments.)
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

// Where an operand lies. kInput and kOutput are the caller's and may be one; kScratch belongs to
// the executor and holds one segment per (chunk, slice), valid within a turn.
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
  bool is_final = false;   // the reduction is complete after this step: an average divides here
  bool is_held = false;    // kReceive, kReceiveReduce: kept for a kAnswer later in this turn
  bool is_copied = false;  // kSend: a copy leaves, so the memory may be written at once
  // Reductions: `in` is the right operand and not the left (from op in, out op in). Partners who
  // both reduce what they exchange need it: min of +0 and -0 depends on the order.
  bool is_in_last = false;
  std::uint16_t chunk = 0;    // whose segments the step streams: gives the length
  std::int16_t to = kNobody;  // a rank
  std::int16_t from = kNobody;
  Operand in;
  Operand out;
};

// What a program does to the data; the executor's and the checker's common knowledge of a
// collective's meaning.
enum class Collective : std::uint8_t {
  kAllReduce,      // input: count at every rank; output: count, the reduction, at every rank
  kReduceScatter,  // input: count at every rank; output: rank r holds chunk r of the reduction
  kAllGather,      // input: rank r gives chunk r; output: count at every rank
  kBroadcast,      // input: count at the root; output: count at every rank
  kBarrier,        // nobody leaves before everybody has come; no data
  kPushPull,  // as all_reduce over the workers' inputs, through servers, who may update in between
  kPush,      // its first half: server i holds chunk i of the reduction, as of the servers' chunks
  kPull,      // its second: server i gives chunk i; output: count at every worker
  kReduce,    // input: count at every rank; output: count, the reduction, at the root
  kGather,    // input: rank r gives chunk r; output: count at the root
  kScatter,   // input: count at the root; output: rank r gets chunk r
  kAllToAll,  // of 2 n chunks, rank r gives chunk p to rank p, and gets chunk n + p from it
  kScan,      // input: count; output: the reduction over the ranks up to this one, it included
  kExclusiveScan,  // over the ranks before this one; rank 0 gets nothing
  kMessage,        // one rank's input is another's output; the others know nothing of it
};

std::string_view to_string(Collective collective);

// Those that combine elements of several ranks.
constexpr bool is_reduction(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kPushPull || collective == Collective::kPush ||
         collective == Collective::kReduce || collective == Collective::kScan ||
         collective == Collective::kExclusiveScan;
}

// Those of a parameter server.
constexpr bool has_servers(Collective collective) {
  return collective == Collective::kPushPull || collective == Collective::kPush ||
         collective == Collective::kPull;
}

// Those in which one rank gives or gets all.
constexpr bool has_root(Collective collective) {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter;
}

// Chunks in a row: what a buffer holds, packed.
struct ChunkRange {
  int first = 0;
  int count = 0;
};

// The program of one rank. How long a chunk is says the operation; as a rule chunk c of
// `chunks` holds elements chunk_begin(count, chunks, c) up to that of c + 1.
struct Schedule {
  Collective collective = Collective::kBarrier;
  std::string algorithm;
  int rank = 0;
  int size = 1;
  int chunks = 1;
  int slices = 1;         // segments of a chunk that one turn handles
  int contributions = 1;  // how many inputs a complete reduction has: the divisor of an average
  int spans = 1;          // how often the chunks go through the count: twice in all_to_all
  ChunkRange input;       // what the caller's buffers hold
  ChunkRange output;
  // What every rank sends lies in the callers' memory, sums too, and is not overwritten before it
  // has left: over channels that copy nothing no slot is filled.
  bool leaves_from_memory = false;
  std::vector<Step> steps;
};

// Whether kSend always sends a copy. In place, where what comes in lies on what goes out: there a
// chunk's memory is soon that of another.
constexpr bool sends_copies(const Schedule& schedule, bool is_in_place) {
  return is_in_place && schedule.spans > 1;
}

// The first element of chunk `chunk` when `count` elements are split into `chunks`: equal parts,
// the first count % chunks of them one element longer.
constexpr std::size_t chunk_begin(std::size_t count, int chunks, int chunk) {
  const auto n = static_cast<std::size_t>(chunks);
  const auto c = static_cast<std::size_t>(chunk);
  return c * (count / n) + (c < count % n ? c : count % n);
}

constexpr std::size_t chunk_count(std::size_t count, int chunks, int chunk) {
  return chunk_begin(count, chunks, chunk + 1) - chunk_begin(count, chunks, chunk);
}

// What an algorithm may know of the channels it will run over.
struct ScheduleRequest {
  int rank = 0;
  int size = 1;
  int root = 0;             // of those that have one
  int peer = 0;             // message: who receives; root is who sends
  bool can_answer = false;  // every channel has Capabilities::can_answer
  // By rank: which host it is on, hosts numbered in the order of their first ranks. Empty: one.
  std::span<const int> hosts = {};
};

// One line per step, for people.
std::string describe(const Schedule& schedule);

}  // namespace kolo
