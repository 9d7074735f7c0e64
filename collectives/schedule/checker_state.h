// State of the checker: symbolic values, the memory of each rank, and the queues between ranks.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/schedule.h"
#include "collectives/schedule/checker.h"
#include "collectives/schedule/layout.h"

namespace kolo::inline v0::checking {

inline constexpr int kMostRanks = 256;
using Contributions = std::bitset<kMostRanks>;

// The element of the operation that a value belongs to, named the same on every rank.
struct Element {
  int chunk = 0;
  std::size_t offset = 0;
  friend bool operator==(const Element&, const Element&) = default;
};
std::string to_string(const Element& element);

// Hash of a rank's own contribution, and of `left op right`. Never 0.
std::uint64_t order_of(int rank);
std::uint64_t order_of(std::uint64_t left, std::uint64_t right);

struct Value {
  Contributions from;
  std::uint64_t order = 0;  // hash of how it was combined; left and right differ
  int first_rank = 0;       // of the contributions, for the order of the ranks
  int last_rank = 0;
  Element element;
  bool is_defined = false;
  bool is_final = false;
  bool is_updated = false;
  bool is_scaled = false;  // a contribution that was read from the caller's input
};

// A send that reads a cell: the cell must not change before the receiver has received the segment.
struct Reader {
  int receiver;
  std::size_t segment;  // index on the channel to the receiver
};

struct Cell {
  Value value;
  std::vector<Reader> readers;
};

struct Segment {
  std::vector<Value> values;
  std::vector<std::uint32_t> clock;  // of the sender at the send; after an answer, of the answerer
  std::size_t receipt_time = 0;      // on the receiver's clock; 0: not received
  bool wants_answer = false;
  bool is_header = false;
  bool is_answered = false;
  bool is_free = false;  // returns its credit once all before it are free
};

struct Queue {
  std::vector<Segment> segments;
  std::size_t next_receive = 0;
  std::size_t next_answer = 0;  // the oldest answered segment that was not read back
  std::size_t freed = 0;
  std::size_t held = 0;  // segment that the receiver keeps open; 0: none (index 0 is the header)
};

// A fault of the schedule. It ends the check and becomes the report.
struct Fault {
  std::string text;
};

// A rank's memory, and its position in its program.
struct Rank {
  const Schedule* schedule = nullptr;
  Layout layout;
  std::vector<Cell> cells;      // input, then output; in place both share cells
  std::size_t output_base = 0;  // offset of output elements in cells, modulo 2^64
  std::map<std::pair<int, int>, std::vector<Cell>> scratch;  // by (chunk, slice)
  std::vector<std::uint32_t> clock;
  Contributions arrived;  // barrier: ranks known to have entered
  std::size_t turn = 0;
  std::size_t turns = 0;
  std::size_t step = 0;
};

// All queues of the job: the one from rank a to rank b is at a * size + b.
class Queues {
 public:
  explicit Queues(std::size_t size) : size_(size), queues_(size * size) {}

  Queue& between(int from, int to) {
    return queues_[static_cast<std::size_t>(from) * size_ + static_cast<std::size_t>(to)];
  }

 private:
  std::size_t size_;
  std::vector<Queue> queues_;
};

// Fills a rank's memory with its own contributions, and counts its turns.
Rank make_rank(const Schedule& schedule, int size, const CheckOptions& options);

bool is_server(const CheckOptions& options, int rank);

// The first rank with this chunk in its input.
int giver_of(std::span<const Rank> ranks, int chunk);

std::size_t segments_of(const Rank& self, int chunk, const CheckOptions& options);

// Elements of a step's segment.
std::size_t length_of(const Rank& self, const Step& step, std::size_t segment,
                      const CheckOptions& options);

// The cells of an operand for segment `segment` of the step's chunk.
std::vector<Cell*> cells_of(Rank& self, const Step& step, Operand operand, std::size_t segment,
                            const CheckOptions& options);

std::vector<Value> read(Rank& self, const Step& step, std::size_t segment,
                        const CheckOptions& options);

void write(Rank& self, const Step& step, std::size_t segment, const std::vector<Value>& values,
           const CheckOptions& options, Queues& queues);

// Describes the fault and its place in the rank's program.
Fault fault(const Rank& self, const Step& step, std::string_view what);

}  // namespace kolo::inline v0::checking
