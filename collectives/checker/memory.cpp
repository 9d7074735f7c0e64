#include "collectives/checker/symbols.h"

#include <fmt/format.h>

#include <algorithm>

namespace kolo::checking {

bool is_server(const CheckOptions& options, int rank) {
  return std::find(options.servers.begin(), options.servers.end(), rank) != options.servers.end();
}

std::pair<std::size_t, std::size_t> held_range(const Schedule& schedule, int chunk,
                                               std::size_t count) {
  if (chunk < 0) return {0, count};
  return {chunk_begin(count, schedule.chunks, chunk),
          chunk_begin(count, schedule.chunks, chunk + 1)};
}

std::size_t segments_of(const Rank& self, int chunk, const CheckOptions& options) {
  const std::size_t elements = chunk_count(options.count, self.schedule->chunks, chunk);
  return (elements + options.segment_elements - 1) / options.segment_elements;
}

std::size_t length_of(const Rank& self, const Step& step, std::size_t segment,
                      const CheckOptions& options) {
  const std::size_t elements = chunk_count(options.count, self.schedule->chunks, step.chunk);
  return std::min(options.segment_elements, elements - segment * options.segment_elements);
}

namespace {

std::size_t turns_of(const Rank& self, const CheckOptions& options) {
  const auto slices = static_cast<std::size_t>(self.schedule->slices);
  std::size_t turns = 0;
  for (const Step& step : self.schedule->steps) {
    const std::size_t segments = segments_of(self, step.chunk, options);
    if (segments <= step.slice) continue;
    turns = std::max(turns, (segments - step.slice + slices - 1) / slices + step.stage);
  }
  return turns;
}

}  // namespace

Rank make_rank(const Schedule& schedule, int size, const CheckOptions& options) {
  Rank self;
  self.schedule = &schedule;
  self.clock.assign(static_cast<std::size_t>(size), 0);
  self.arrived.set(static_cast<std::size_t>(schedule.rank));
  const bool is_broadcast = schedule.collective == Collective::kBroadcast;
  self.output_base = options.is_in_place || is_broadcast ? 0 : options.count;
  self.cells.resize(self.output_base + options.count);
  const bool has_input =
      is_broadcast ? schedule.rank == options.root : !is_server(options, schedule.rank);
  const auto [first, last] = held_range(schedule, schedule.input_chunk, options.count);
  for (std::size_t element = first; has_input && element < last; ++element) {
    Value& value = self.cells[element].value;
    value.from.set(static_cast<std::size_t>(schedule.rank));
    value.element = element;
    value.is_defined = true;
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
  const int only = is_input ? self.schedule->input_chunk : self.schedule->output_chunk;
  const auto [first, last] = held_range(*self.schedule, only, options.count);
  const std::size_t begin =
      chunk_begin(options.count, self.schedule->chunks, operand.chunk) + offset;
  if (begin < first || begin + length > last) {
    throw fault(self, step, "reaches outside the caller's buffer");
  }
  const std::size_t base = is_input ? 0 : self.output_base;
  for (std::size_t i = 0; i < length; ++i) cells.push_back(&self.cells[base + begin + i]);
  return cells;
}

std::vector<Value> read(Rank& self, const Step& step, std::size_t segment,
                        const CheckOptions& options) {
  std::vector<Value> values;
  for (const Cell* cell : cells_of(self, step, step.in, segment, options)) {
    if (!cell->value.is_defined && self.schedule->collective != Collective::kBarrier) {
      throw fault(self, step, "reads what nobody has written");
    }
    values.push_back(cell->value);
  }
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

}  // namespace kolo::checking
