// Record of one run (one arm, one seed): all data for reports. Plain values, convertible to JSON
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
  double train_loss = 0;        // mean over the epoch's samples, during training
  double train_accuracy = 0;
  bool is_evaluated = false;
  double test_loss = 0;
  double test_accuracy = 0;
  std::string test_note;        // why test_loss is not a number; empty: it is one
  double training_seconds = 0;  // so far, without evaluation and checks
  double learning_rate = 0;     // of the last iteration
};

// One process. Means are over the counted iterations, i.e. without the first few.
struct RankRecord {
  int rank = 0;
  bool is_worker = true;
  double images_per_second = 0;
  double step_seconds = 0;
  PartSeconds parts{};             // of an iteration; they add up to step_seconds
  double forward_median = 0;       // median over iterations; `parts` has the mean
  double exposed_in_backward = 0;  // the part of `exposed` that was spent inside backward
  double in_flight = 0;  // per iteration: seconds in which any of the rank's buckets was in flight
  double waiting_for_stages = 0;  // per iteration, of a pipeline's stage: seconds
  double bytes_sent = 0;          // per iteration, all iterations, as the transport counted them
  double bytes_received = 0;
  double formula_sent = 0;  // per iteration, by the strategy's formula
  double formula_received = 0;
  // For the prediction, per iteration.
  double first_full = 0;  // seconds from the start of backward until the first bucket was full
  double hops = 0;        // messages in sequence, summed over buckets
  double last_bytes = 0;  // of the last bucket by the formula: the larger of sent and received
  double last_hops = 0;
  double busy_cores = 0;     // CPU seconds per second of training
  double peak_mib = 0;       // resident memory
  double optimizer_mib = 0;  // of it, the optimizer's state
};

// Times of one operation of the model on rank 0: means over the counted iterations.
struct LayerRecord {
  std::string name;     // "conv1"; "after conv1" if it has no parameters
  std::string kind;     // "conv2d"
  double forward = 0;   // seconds
  double backward = 0;  // seconds, without communication inside
  double flops = 0;     // of forward and backward; 0: not counted
};

// A span of one rank's iteration, by rank 0's clock.
struct TimelineEvent {
  int rank = 0;
  int bucket = -1;  // the bucket in exchange; below 0: the training thread
  std::string name;
  double begin = 0;  // seconds
  double seconds = 0;
};

struct RunRecord {
  std::string arm;
  std::string program = "kolo";  // or "torch 2.15.0"
  std::uint64_t seed = 0;
  std::string formula;                       // of the bytes, in words
  std::string difference;                    // from synchronous training, in words; may be empty
  std::map<std::string, std::string> terms;  // what must be equal in all arms
  std::string transport;
  int workers = 0;
  int servers = 0;
  int stages = 0;         // of a pipeline; 0: each worker has the whole model
  int micro_batches = 1;  // of a worker, in an iteration
  int classes = 0;
  double allowed_byte_difference = 0;  // between measured and formula, from uneven chunks
  std::int64_t counted_iterations = 0;
  std::vector<EpochRecord> epochs;
  std::vector<RankRecord> ranks;
  std::vector<double> step_seconds;  // of every iteration, on rank 0
  std::vector<double> step_losses;   // of every iteration, over the global batch, before its update
  std::vector<LayerRecord> layers;   // in the order of forward; empty without --profile
  std::vector<TimelineEvent> timeline;  // of two iterations, all ranks; empty without --timeline
  // Of servers that apply gradients in the order of arrival; empty and 0 for other arms.
  std::vector<double> staleness;  // [s]: gradients applied s updates after their worker's last pull
  double gradients_applied = 0;
  double gradients_dropped = 0;  // after the end of their iteration
  // On rank 0, by --clip-norm, and by overflow with --compress float16.
  double updates_clipped = 0;
  double updates_skipped = 0;
  std::string final_hash;
  std::int64_t replica_checks = 0;
  double training_seconds = 0;  // rank 0: all iterations
  double evaluation_seconds = 0;
  double checking_seconds = 0;  // checks of the replicas
  double total_seconds = 0;     // with start-up
  // By the model of prediction.h; below 0: the network is not known.
  double predicted_step_seconds = -1;
  double predicted_exposed = -1;  // the mean over workers, as the measured one

  bool is_kolo() const { return program == "kolo"; }
  // All workers together, over the counted iterations.
  double images_per_second() const;
  // Per rank, dedicated servers too: what a host contributes if each rank is a host.
  double images_per_second_per_host() const;
  // Seconds of the counted iterations, on rank 0, without those that it left out (backup workers).
  std::vector<double> counted_seconds() const;
  // Forward time of an iteration: the mean over workers of their medians.
  double forward_seconds() const;
  // True if every rank moved the bytes of the formula.
  bool bytes_match() const;
  // CPU seconds per second, of all workers or of all dedicated servers.
  double busy_cores(bool of_workers) const;
};

// The epochs of a run that did not end.
struct UnfinishedRun {
  std::string arm;
  std::uint64_t seed = 0;
  std::vector<EpochRecord> epochs;
};

// One line of JSON.
std::string to_json_text(const RunRecord& record);
// Throws std::runtime_error if the text is not in the format of to_json_text.
RunRecord run_record_from(const std::string& json_text);

}  // namespace kolo::train
