#include "train/loop/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/loop/gather.h"

namespace kolo::train {
namespace {

// The list of fields, used to convert a record to a row of numbers and back.
template <typename Record, typename Visit>
void visit_fields(Record& record, Visit visit) {
  visit(record.images_per_second);
  visit(record.step_seconds);
  for (auto& part : record.parts) visit(part);
  visit(record.forward_median);
  visit(record.exposed_in_backward);
  visit(record.in_flight);
  visit(record.waiting_for_stages);
  visit(record.bytes_sent);
  visit(record.bytes_received);
  visit(record.formula_sent);
  visit(record.formula_received);
  visit(record.first_full);
  visit(record.hops);
  visit(record.last_bytes);
  visit(record.last_hops);
  visit(record.busy_cores);
  visit(record.peak_mib);
  visit(record.optimizer_mib);
}

}  // namespace

void settle_parts(IterationRecord& iteration) {
  double known = 0;
  for (std::size_t i = 0; i + 1 < iteration.parts.size(); ++i) known += iteration.parts[i];
  iteration.parts[static_cast<std::size_t>(Part::other)] = std::max(0.0, iteration.wall - known);
}

std::int64_t counted_iterations(std::int64_t iterations, std::int64_t skip) {
  return std::max(std::min<std::int64_t>(iterations, 1), iterations - skip);
}

RankRecord summarize(const std::vector<IterationRecord>& iterations, std::int64_t skip) {
  RankRecord mean;
  if (iterations.empty()) return mean;
  const auto total = static_cast<std::int64_t>(iterations.size());
  const std::int64_t counted = counted_iterations(total, skip);
  std::int64_t samples = 0;
  std::vector<double> forward;
  for (std::int64_t i = total - counted; i < total; ++i) {
    const IterationRecord& one = iterations[static_cast<std::size_t>(i)];
    samples += one.samples;
    mean.step_seconds += one.wall;
    for (std::size_t part = 0; part < mean.parts.size(); ++part) {
      mean.parts[part] += one.parts[part];
    }
    forward.push_back(one.parts[static_cast<std::size_t>(Part::forward)]);
    mean.exposed_in_backward += one.exchange.in_backward;
    mean.in_flight += one.exchange.in_flight;
    mean.waiting_for_stages += one.waiting_for_stages;
    mean.first_full += one.exchange.first_full;
    mean.hops += one.exchange.hops;
    mean.last_bytes += std::max(one.exchange.last.sent, one.exchange.last.received);
    mean.last_hops += one.exchange.last_hops;
  }
  mean.images_per_second = static_cast<double>(samples) / mean.step_seconds;
  const auto n = static_cast<double>(counted);
  mean.step_seconds /= n;
  for (double& part : mean.parts) part /= n;
  mean.exposed_in_backward /= n;
  mean.in_flight /= n;
  mean.waiting_for_stages /= n;
  for (double* sum : {&mean.first_full, &mean.hops, &mean.last_bytes, &mean.last_hops}) *sum /= n;
  mean.forward_median = quantile(std::move(forward), 0.5);
  for (const IterationRecord& one : iterations) {  // bytes: every iteration counts
    mean.bytes_sent += one.exchange.moved.sent / static_cast<double>(total);
    mean.bytes_received += one.exchange.moved.received / static_cast<double>(total);
    mean.formula_sent += one.exchange.formula.sent / static_cast<double>(total);
    mean.formula_received += one.exchange.formula.received / static_cast<double>(total);
  }
  return mean;
}

std::string layer_name(const tensor::Parameters& parameters, const tensor::Operation& operation,
                       std::string& before) {
  if (before.empty()) before = "the images";
  if (operation.parameter < 0) return "after " + before;
  before = parameters.list()[static_cast<std::size_t>(operation.parameter)].name;
  before.resize(before.rfind('.'));
  return before;
}

std::vector<LayerRecord> layer_records(const tensor::Profile& profile,
                                       const tensor::Parameters& parameters, std::int64_t counted) {
  std::vector<LayerRecord> layers;
  const auto n = static_cast<double>(counted);
  std::string before;
  for (const tensor::OperationTime& one : profile.operations()) {
    layers.push_back({layer_name(parameters, one.operation, before),
                      std::string(one.operation.kind), one.forward / n, one.backward / n,
                      one.operation.flops / n});
  }
  return layers;
}

std::vector<RankRecord> gather_records(Communicator& communicator, const RankRecord& mine) {
  std::vector<double> row{mine.is_worker ? 1.0 : 0.0};
  visit_fields(mine, [&](double value) { row.push_back(value); });
  std::vector<RankRecord> records;
  for (const std::vector<double>& values : gather_rows(communicator, row)) {
    RankRecord record;
    record.rank = static_cast<int>(records.size());
    record.is_worker = values[0] > 0;
    std::size_t next = 1;
    visit_fields(record, [&](double& value) { value = values[next++]; });
    records.push_back(record);
  }
  return records;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - std::floor(place));
}

}  // namespace kolo::train
