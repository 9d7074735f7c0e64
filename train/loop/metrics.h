// What a rank notes in each iteration, and the means that it reports.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/communicator.h"
#include "train/experiment/run_record.h"
#include "train/loop/gradient_reducer.h"

namespace kolo::train {

struct IterationRecord {
  double wall = 0;  // seconds, from asking for the data to updated parameters
  PartSeconds parts{};
  ExchangeRecord exchange;
  std::int64_t samples = 0;  // of this rank
  double loss = 0;           // this rank's summand of the mean over the global batch
  std::int64_t correct = 0;
};

// `other` is what is left of `wall` when all parts are known.
void settle_parts(IterationRecord& iteration);

// The iterations that count for speeds: all but the first `skip`, but at least the last one.
std::int64_t counted_iterations(std::int64_t iterations, std::int64_t skip);

// One rank's means. Values only: who is who and what it used is filled in by the caller.
RankRecord summarize(const std::vector<IterationRecord>& iterations, std::int64_t skip);

// Collective over all ranks: everybody's record, in the order of ranks.
std::vector<RankRecord> gather_records(Communicator& communicator, const RankRecord& mine);

// The value below which a fraction `q` of the values lies, between neighbours by proportion; 0 for
// none.
double quantile(std::vector<double> values, double q);

}  // namespace kolo::train
