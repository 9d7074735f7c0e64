#include "train/report/epoch_files.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "train/experiment/run_record_json.h"
#include "train/report/tensorboard.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;
constexpr const char* kJson = "metrics.jsonl";
constexpr const char* kTable = "metrics.csv";
constexpr const char* kHeader =
    "arm,seed,epoch,iterations,train_loss,train_accuracy,test_loss,test_accuracy,"
    "training_seconds,learning_rate\n";

std::string json_line(const std::string& arm, std::uint64_t seed, const EpochRecord& epoch) {
  nlohmann::json line = epoch;
  line["arm"] = arm;
  line["seed"] = seed;
  return line.dump() + "\n";
}

std::string table_line(const std::string& arm, std::uint64_t seed, const EpochRecord& epoch) {
  const std::string tested =
      epoch.is_evaluated ? fmt::format("{},{}", epoch.test_loss, epoch.test_accuracy) : ",";
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", arm, seed, epoch.epoch, epoch.iterations,
                     epoch.train_loss, epoch.train_accuracy, tested, epoch.training_seconds,
                     epoch.learning_rate);
}

fs::path part_of(const std::string& folder, const char* name) {
  return fs::path(folder) / fmt::format("{}.part", name);
}

}  // namespace

void EpochLog::add(const std::string& arm, std::uint64_t seed, const EpochRecord& epoch) {
  if (folder_.empty()) return;
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  const auto mode = is_begun_ ? std::ios::app : std::ios::trunc;
  std::ofstream(part_of(folder_, kJson), std::ios::out | mode) << json_line(arm, seed, epoch);
  std::ofstream(part_of(folder_, kTable), std::ios::out | mode)
      << (is_begun_ ? "" : kHeader) << table_line(arm, seed, epoch);
  is_begun_ = true;
}

void remove_epoch_log(const std::string& folder) {
  std::error_code ignored;
  for (const char* const name : {kJson, kTable}) fs::remove(part_of(folder, name), ignored);
}

std::map<std::string, std::string> epoch_files(const std::vector<UnfinishedRun>& runs) {
  std::map<std::string, std::string> files;
  files[kTable] = kHeader;
  const auto now = static_cast<double>(std::time(nullptr));
  for (const UnfinishedRun& run : runs) {
    for (const EpochRecord& epoch : run.epochs) {
      files[kJson] += json_line(run.arm, run.seed, epoch);
      files[kTable] += table_line(run.arm, run.seed, epoch);
    }
    const std::string name =
        fmt::format("{}/{} seed {}/{}", kEventFolder, run.arm, run.seed, kEventFile);
    files[name] = event_file(scalars_of(run.epochs, now), now);
  }
  return files;
}

}  // namespace kolo::train
