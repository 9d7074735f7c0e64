// What one run (one arm, one seed) came to: everything that reports are made of. Plain values; JSON
// and back.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::train {

// The parts of an iteration's time on the training thread.
enum class Part { data, forward, backward, exposed, optimizer, other };
inline constexpr std::array<std::string_view, 6> kPartNames{"data",    "forward",   "backward",
                                                            "exposed", "optimizer", "other"};
using PartSeconds = std::array<double, kPartNames.size()>;

struct EpochRecord {
  int epoch = 0;                // 1, 2, ...
  std::int64_t iterations = 0;  // done so far
  double train_loss = 0;        // mean over the epoch's samples, while they were trained on
  double train_accuracy = 0;
  bool is_evaluated = false;
  double test_loss = 0;
  double test_accuracy = 0;
  double training_seconds = 0;  // so far, evaluation and proofs left out
  double learning_rate = 0;     // of the last iteration
};

// One process. Means are over the counted iterations, those after the first few.
struct RankRecord {
  int rank = 0;
  bool is_worker = true;
  double images_per_second = 0;
  double step_seconds = 0;
  PartSeconds parts{};             // of an iteration; they add up to step_seconds
  double forward_median = 0;       // of an iteration, where parts has the mean
  double exposed_in_backward = 0;  // the part of `exposed` that was spent inside backward
  double in_flight = 0;  // of an iteration: from the first bucket's start to the last one's arrival
  double bytes_sent = 0;  // per iteration, all iterations, as the transport counted them
  double bytes_received = 0;
  double formula_sent = 0;  // per iteration, as the strategy promises
  double formula_received = 0;
  double busy_cores = 0;  // CPU seconds per second of training
  double peak_mib = 0;    // resident memory
};

struct RunRecord {
  std::string arm;
  std::uint64_t seed = 0;
  std::string formula;                       // of the bytes, in words
  std::map<std::string, std::string> terms;  // what must be equal in all arms
  std::string transport;
  int workers = 0;
  int servers = 0;
  double allowed_byte_difference = 0;  // between measured and formula, from rounding chunks
  std::int64_t counted_iterations = 0;
  std::vector<EpochRecord> epochs;
  std::vector<RankRecord> ranks;
  std::vector<double> step_seconds;  // of every iteration, on rank 0
  std::vector<double> step_losses;   // of every iteration, over the global batch, before its update
  std::string final_hash;
  std::int64_t replica_checks = 0;
  double training_seconds = 0;  // rank 0: all iterations
  double evaluation_seconds = 0;
  double checking_seconds = 0;  // proofs of equality
  double total_seconds = 0;     // with start-up

  // All workers together, over the counted iterations.
  double images_per_second() const;
  // Of the counted iterations, on rank 0.
  std::vector<double> counted_seconds() const;
  // Of an iteration's forward: the mean over workers of their medians.
  double forward_seconds() const;
  // True where every rank moved what the formula says.
  bool bytes_match() const;
  // CPU seconds per second, of all workers or of all dedicated servers.
  double busy_cores(bool of_workers) const;
};

// One line of JSON.
std::string to_json_text(const RunRecord& record);
// Throws std::runtime_error where the text is not what to_json_text writes.
RunRecord run_record_from(const std::string& json_text);

}  // namespace kolo::train
