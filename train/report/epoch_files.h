// Files with the epochs of all runs: metrics.jsonl, metrics.csv, and TensorBoard's event files.
//
// During the training each epoch is added to metrics.jsonl.part and metrics.csv.part. With the
// report they are replaced by the complete files, so that an interrupted run changes no earlier
// ones.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "train/experiment/run_record.h"

namespace kolo::train {

class EpochLog {
 public:
  // An empty folder: nothing is written.
  explicit EpochLog(std::string folder) : folder_(std::move(folder)) {}

  // Adds a line to each file. Any thread may call it. Failures are ignored: the report says at the
  // end if its folder cannot be written.
  void add(const std::string& arm, std::uint64_t seed, const EpochRecord& epoch);

 private:
  std::mutex mutex_;
  std::string folder_;
  bool is_begun_ = false;
};

// The event files are FOLDER/tensorboard/RUN/events.out.tfevents.0.kolo.
constexpr const char* kEventFolder = "tensorboard";
constexpr const char* kEventFile = "events.out.tfevents.0.kolo";

// Removes the files of an EpochLog.
void remove_epoch_log(const std::string& folder);

// The complete files: name to contents.
std::map<std::string, std::string> epoch_files(const std::vector<UnfinishedRun>& runs);

}  // namespace kolo::train
