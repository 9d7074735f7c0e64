// Observer of a run: the progress bar, the report, or the process that started this rank.
#pragma once

#include <cstdint>
#include <string>

#include "train/experiment/run_record.h"

namespace kolo::train {

// The activity of an arm that waits for its turn. Not shown.
inline constexpr const char* kWaitsForTurn = "waiting";

struct ProgressNote {
  std::string activity;  // "starting", "training", "evaluating", or kWaitsForTurn
  int epoch = 0;         // 1, 2, ...
  int epochs = 0;
  std::int64_t iteration = 0;  // done
  std::int64_t iterations = 0;
  double loss = 0;               // of the last few iterations, as far as rank 0 knows
  double images_per_second = 0;  // of all workers, in the same way
  double test_accuracy = -1;     // of the last evaluation; below 0: none yet
};

// Called on rank 0 only.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void progress(const ProgressNote& note) = 0;
  virtual void epoch_ended(const EpochRecord& epoch) = 0;
  virtual void finished(const RunRecord& record) = 0;
};

}  // namespace kolo::train
