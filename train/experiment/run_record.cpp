#include "train/experiment/run_record.h"

#include <cmath>
#include <stdexcept>

#include "train/experiment/run_record_json.h"

namespace kolo::train {

double RunRecord::images_per_second() const {
  double sum = 0;
  for (const RankRecord& rank : ranks) sum += rank.images_per_second;
  return sum;
}

double RunRecord::images_per_second_per_host() const {
  return images_per_second() / (workers + servers);
}

std::vector<double> RunRecord::counted_seconds() const {
  std::vector<double> seconds(step_seconds.end() - static_cast<std::ptrdiff_t>(counted_iterations),
                              step_seconds.end());
  std::erase(seconds, 0.0);
  return seconds;
}

double RunRecord::forward_seconds() const {
  double sum = 0;
  for (const RankRecord& rank : ranks) sum += rank.is_worker ? rank.forward_median : 0;
  return sum / workers;
}

bool RunRecord::bytes_match() const {
  for (const RankRecord& rank : ranks) {
    if (std::abs(rank.bytes_sent - rank.formula_sent) > allowed_byte_difference) return false;
    if (std::abs(rank.bytes_received - rank.formula_received) > allowed_byte_difference) {
      return false;
    }
  }
  return true;
}

double RunRecord::busy_cores(bool of_workers) const {
  double sum = 0;
  for (const RankRecord& rank : ranks) {
    if (rank.is_worker == of_workers) sum += rank.busy_cores;
  }
  return sum;
}

std::string to_json_text(const RunRecord& record) { return nlohmann::json(record).dump(); }

RunRecord run_record_from(const std::string& json_text) {
  try {
    return nlohmann::json::parse(json_text).get<RunRecord>();
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string("a rank's record cannot be read: ") + error.what());
  }
}

}  // namespace kolo::train
