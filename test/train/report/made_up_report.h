// Artificial records of runs, for tests of reports.
#pragma once

#include <string>

#include "train/report/report.h"

namespace kolo::test {

using namespace train;

inline RunRecord made_up_run(const std::string& arm, std::uint64_t seed, int servers) {
  RunRecord run;
  run.arm = arm;
  run.seed = seed;
  run.formula = "so much";
  run.terms = {{"model", "small"},
               {"learning rate", "0.1"},
               {"batch", "64"},
               {"compute", "x"},
               {"transport", "y"}};
  run.workers = 2;
  run.servers = servers;
  run.counted_iterations = 2;
  run.step_seconds = {0.5, 0.2, 0.3};
  run.step_losses = {3, 2, 1};
  run.epochs = {{1, 3, 2.0, 0.3, true, 1.5, 0.5, {}, 1.0, 0.1}};
  for (int rank = 0; rank < 2 + servers; ++rank) {
    RankRecord record;
    record.rank = rank;
    record.is_worker = rank < 2;
    record.images_per_second = record.is_worker ? 80 : 0;
    record.step_seconds = 0.25;
    record.parts = {0.01, 0.06, 0.12, 0.04, 0.015, 0.005};
    record.forward_median = record.is_worker ? 0.0503 : 0;
    record.bytes_sent = record.formula_sent = 1 << 20;
    record.bytes_received = record.formula_received = 1 << 20;
    run.ranks.push_back(record);
  }
  run.final_hash = "0123456789abcdef";
  run.replica_checks = 4;
  return run;
}

inline Report made_up_report() {
  Report report;
  report.command = "kolo-train compare";
  report.machine = {{"cores", "4"}};
  report.runs = {made_up_run("ring", 1, 0), made_up_run("ps", 1, 1)};
  return report;
}

}  // namespace kolo::test
