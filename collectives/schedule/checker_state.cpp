#include "collectives/schedule/checker_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/schedule/turns.h"

namespace kolo::inline v0::checking {

bool is_server(const CheckOptions& options, int rank) {
  return std::find(options.servers.begin(), options.servers.end(), rank) != options.servers.end();
}

int giver_of(std::span<const Rank> ranks, int chunk) {
  const auto gives = [chunk](const Rank& rank) {
    const ChunkRange& held = rank.schedule->input;
    return chunk >= held.first && chunk < held.first + held.count;
  };
  return static_cast<int>(std::ranges::find_if(ranks, gives) - ranks.begin());
}

std::string to_string(const Element& element) {
  return fmt::format("{} of chunk {}", element.offset, element.chunk);
}

namespace {

// The finalizer of splitmix64 (Steele, Lea and Flood 2014).
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebU;
  return bits ^ bits >> 31;
}

}  // namespace

std::uint64_t order_of(int rank) { return mix(static_cast<std::uint64_t>(rank) + 1) | 1; }

std::uint64_t order_of(std::uint64_t left, std::uint64_t right) {
  return mix(3 * left + mix(right)) | 1;
}

std::size_t segments_of(const Rank& self, int chunk, const CheckOptions& options) {
  const std::size_t elements = self.layout.length(chunk);
  return (elements + options.segment_elements - 1) / options.segment_elements;
}

std::size_t length_of(const Rank& self, const Step& step, std::size_t segment,
                      const CheckOptions& options) {
  const std::size_t elements = self.layout.length(step.chunk);
  return std::min(options.segment_elements, elements - segment * options.segment_elements);
}

namespace {

std::size_t turns_of(const Rank& self, const CheckOptions& options) {
  std::size_t turns = 0;
  for (const Step& step : self.schedule->steps) {
    turns = std::max(turns, turns_until_end(segments_of(self, step.chunk, options), step.stage,
                                            step.slice, self.schedule->slices));
  }
  return turns;
}

}  // namespace

Rank make_rank(const Schedule& schedule, int size, const CheckOptions& options) {
  Rank self;
  self.schedule = &schedule;
  self.clock.assign(static_cast<std::size_t>(size), 0);
  self.arrived.set(static_cast<std::size_t>(schedule.rank));
  if (options.lengths.empty()) {
    self.layout.split(options.count, schedule.chunks, schedule.spans);
  } else {
    self.layout.assign(options.lengths[static_cast<std::size_t>(schedule.rank)]);
  }
  const std::size_t all = self.layout.begin(schedule.chunks);
  const bool is_one_memory = options.is_in_place || schedule.collective == Collective::kBroadcast;
  // In place the first output chunk shares memory with the first input chunk, even if they differ.
  const std::size_t shift =
      schedule.spans > 1 ? self.layout.begin(schedule.output.first) : std::size_t{0};
  self.output_base = is_one_memory ? std::size_t{0} - shift : all;
  self.cells.resize(is_one_memory ? all : 2 * all);
  for (int k = 0; k < schedule.input.count; ++k) {
    const int chunk = schedule.input.first + k;
    for (std::size_t offset = 0; offset < self.layout.length(chunk); ++offset) {
      Value& value = self.cells[self.layout.begin(chunk) + offset].value;
      value.from.set(static_cast<std::size_t>(schedule.rank));
      value.order = order_of(schedule.rank);
      value.first_rank = value.last_rank = schedule.rank;
      value.element = {chunk, offset};
      value.is_defined = true;
    }
  }
  self.turns = turns_of(self, options);
  return self;
}

std::vector<Cell*> cells_of(Rank& self, const Step& step, Operand operand, std::size_t segment,
                            const CheckOptions& options) {
  const std::size_t offset = segment * options.segment_elements;
  const std::size_t length = length_of(self, step, segment, options);
  std::vector<Cell*> cells;
  if (operand.place == Place::kScratch) {
    auto& scratch = self.scratch[{operand.chunk, step.slice}];
    if (scratch.size() < length) scratch.resize(length);
    for (std::size_t i = 0; i < length; ++i) cells.push_back(&scratch[i]);
    return cells;
  }
  if (operand.place == Place::kNone) throw fault(self, step, "has no operand where it needs one");
  const bool is_input = operand.place == Place::kInput;
  const ChunkRange& held = is_input ? self.schedule->input : self.schedule->output;
  const std::size_t first = self.layout.begin(held.first);
  const std::size_t last = self.layout.begin(held.first + held.count);
  const std::size_t begin = self.layout.begin(operand.chunk) + offset;
  if (begin < first || begin + length > last) {
    throw fault(self, step, "reaches outside the caller's buffer");
  }
  const std::size_t base = is_input ? 0 : self.output_base;
  for (std::size_t i = 0; i < length; ++i) cells.push_back(&self.cells[base + begin + i]);
  return cells;
}

namespace {

// A scaled sum scales what is read from the caller's input. All other operands must be scaled
// already.
void scale(const Rank& self, const Step& step, std::vector<Value>& values) {
  const bool is_input = step.in.place == Place::kInput;
  for (Value& value : values) {
    if (is_input && value.is_scaled) throw fault(self, step, "scales a contribution twice");
    if (!is_input && !value.is_scaled) throw fault(self, step, "leaves a contribution unscaled");
    value.is_scaled = true;
  }
}

}  // namespace

std::vector<Value> read(Rank& self, const Step& step, std::size_t segment,
                        const CheckOptions& options) {
  std::vector<Value> values;
  for (const Cell* cell : cells_of(self, step, step.in, segment, options)) {
    if (!cell->value.is_defined && self.schedule->collective != Collective::kBarrier) {
      throw fault(self, step, "reads memory that was never written");
    }
    values.push_back(cell->value);
  }
  if (is_reduction(self.schedule->collective)) scale(self, step, values);
  return values;
}

void write(Rank& self, const Step& step, std::size_t segment, const std::vector<Value>& values,
           const CheckOptions& options, Queues& queues) {
  const std::vector<Cell*> cells = cells_of(self, step, step.out, segment, options);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (const Reader& reader : cells[i]->readers) {
      const std::size_t receipt = queues.between(self.schedule->rank, reader.receiver)
                                      .segments[reader.segment]
                                      .receipt_time;
      if (receipt == 0 || self.clock[static_cast<std::size_t>(reader.receiver)] < receipt) {
        throw fault(
            self, step,
            fmt::format("writes memory that rank {} may not have received yet", reader.receiver));
      }
    }
    cells[i]->readers.clear();
    cells[i]->value = values[i];
  }
}

Fault fault(const Rank& self, const Step& step, std::string_view what) {
  return {fmt::format("rank {}, turn {}, step {} ({}, chunk {}): {}", self.schedule->rank,
                      self.turn, self.step, to_string(step.kind), step.chunk, what)};
}

}  // namespace kolo::inline v0::checking
