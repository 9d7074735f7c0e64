#include <nlohmann/json.hpp>

#include "train/experiment/run_record_json.h"
#include "train/loop/metrics.h"
#include "train/report/findings.h"
#include "train/report/report.h"
#include "train/report/table.h"

namespace kolo::train {
namespace {

// Adds summary values, so that all readers use the same definitions.
nlohmann::json with_summary(const RunRecord& run) {
  nlohmann::json json = run;
  json.erase("timeline");  // in a file of its own
  json["images_per_second"] = run.images_per_second();
  json["images_per_second_per_host"] = run.images_per_second_per_host();
  json["bytes_match_formula"] = run.bytes_match();
  json["busy_cores_workers"] = run.busy_cores(true);
  json["busy_cores_servers"] = run.busy_cores(false);
  const std::vector<double> counted = run.counted_seconds();
  json["step_seconds_p10"] = quantile(counted, 0.1);
  json["step_seconds_median"] = quantile(counted, 0.5);
  json["step_seconds_p90"] = quantile(counted, 0.9);
  return json;
}

}  // namespace

std::string report_json(const Report& report) {
  nlohmann::json json;
  json["format"] = "kolo-report-1";
  json["command"] = report.command;
  json["machine"] = report.machine;
  if (!report.incomplete.empty()) json["incomplete"] = report.incomplete;
  json["findings"] = findings(report);
  json["skipped_iterations"] = report.skipped_iterations();
  json["part_names"] = kPartNames;
  if (!report.unfinished.empty()) json["unfinished"] = report.unfinished;
  json["runs"] = nlohmann::json::array();
  for (const RunRecord& run : report.runs) json["runs"].push_back(with_summary(run));
  return json.dump(1) + "\n";
}

}  // namespace kolo::train
