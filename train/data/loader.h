// Loader: prepares batches in advance, on its own threads.
//
// A thread follows the plan, reads this rank's samples from the data set, augments and normalises
// them, and keeps up to `depth` batches ready. Batches are swapped, not copied, so no batch is
// allocated in the steady state. If a sample is expensive (a JPEG of 224 x 224 takes a
// millisecond), `threads` above 1 share the samples of each batch; starting them takes some 20 us
// each. Batches have the same bytes for every number of threads. next() rethrows the exception of
// the first sample that fails. The destructor stops the threads within one sample.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "train/data/augmentation.h"
#include "train/data/batch_plan.h"
#include "train/data/dataset.h"

namespace kolo::train {

// One rank's share of a global batch.
struct Minibatch {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;         // within the epoch
  std::int64_t global_count = 0;      // samples of all ranks together: the divisor of the loss
  std::vector<std::int64_t> samples;  // indices in the data set; empty: no share in this one
  std::vector<float> images;          // samples, height, width, channels; normalised
  std::vector<std::int32_t> labels;   // one per sample
};

struct LoaderSettings {
  std::uint64_t seed = 1;
  int rank = 0;
  bool is_shuffled = true;  // false: the data set's order, for evaluation
  std::int64_t first_epoch = 0;
  std::int64_t epochs = 1;
  std::int64_t first_iteration = 0;  // of the first epoch; earlier ones are left out
  int depth = 3;                     // maximum number of ready batches
  int threads = 1;                   // that prepare samples
  bool has_images = true;            // false: batches have samples and labels only
  Augmentation augmentation{};
  std::optional<Normalization> normalization{};  // nothing: the data set's
  std::int64_t timeout_ms = 120'000;             // how long next() waits for one batch
};

// For one consumer. The data set is borrowed and must outlive the loader.
class Loader {
 public:
  // Starts the thread. Throws std::invalid_argument for invalid settings.
  Loader(const Dataset& dataset, const BatchPlan& plan, const LoaderSettings& settings);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Swaps the next batch into `batch`, whose memory is reused. Returns false after the last epoch,
  // from then on. Throws the exception of the preparing thread, or DataError on a timeout.
  bool next(Minibatch& batch);

 private:
  void run(const std::stop_token& stop);
  void prepare_epoch(std::int64_t epoch, const std::stop_token& stop);
  bool fill(Minibatch& batch, const std::vector<std::uint32_t>& order, const std::stop_token& stop);
  void fill_sample(Minibatch& batch, std::size_t place, std::vector<std::uint8_t>& pixels) const;
  bool hand_over(Minibatch& batch, const std::stop_token& stop);

  const Dataset& dataset_;
  BatchPlan plan_;
  LoaderSettings settings_;
  std::vector<float> normalised_;  // for each channel, the value of each of the 256 bytes

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Minibatch>
      ring_;  // depth slots; `ready_` of them, from `first_` on, wait for the consumer
  std::size_t first_ = 0;
  std::size_t ready_ = 0;
  bool is_finished_ = false;
  std::exception_ptr failure_;

  std::jthread thread_;  // last member: starts after and stops before all others
};

}  // namespace kolo::train
