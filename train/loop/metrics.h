// Measurements of a rank in each iteration, and the means that it reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "tensor/network.h"
#include "train/experiment/run_record.h"
#include "train/loop/gradient_reducer.h"

namespace kolo::train {

struct IterationRecord {
  double wall = 0;  // seconds, from requesting the data to updated parameters
  PartSeconds parts{};
  ExchangeRecord exchange;
  double waiting_for_stages = 0;  // of a pipeline's stage: seconds
  std::int64_t samples = 0;       // of this rank
  double loss = 0;                // this rank's part of the mean over the global batch
  std::int64_t correct = 0;
};

// Sets the part `other` to the rest of `wall` after all other parts.
void settle_parts(IterationRecord& iteration);

// The number of iterations that count for speeds: all but the first `skip`, but at least one.
std::int64_t counted_iterations(std::int64_t iterations, std::int64_t skip);

// The means of one rank. The caller fills in the rank's identity and its resource usage.
RankRecord summarize(const std::vector<IterationRecord>& iterations, std::int64_t skip);

// The name of the layer of an operation: that of its parameters, else "after" the layer before.
// `before`: empty for the first operation of a pass, then passed on from one to the next.
std::string layer_name(const tensor::Parameters& parameters, const tensor::Operation& operation,
                       std::string& before);

// Means of a profile over its `counted` iterations. Layers have the names of their parameters.
std::vector<LayerRecord> layer_records(const tensor::Profile& profile,
                                       const tensor::Parameters& parameters, std::int64_t counted);

// Collective. Returns the records of all ranks, in rank order.
std::vector<RankRecord> gather_records(Communicator& communicator, const RankRecord& mine);

// The q-quantile of the values, interpolated linearly; 0 if there are no values.
double quantile(std::vector<double> values, double q);

}  // namespace kolo::train
