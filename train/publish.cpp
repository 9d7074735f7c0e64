#include "train/publish.h"

#include <fmt/format.h>

#include <cstdio>

#include "train/machine.h"

namespace kolo::train {

void publish(const Options& options, const std::vector<std::string>& arguments,
             std::vector<RunRecord> runs) {
  Report report;
  report.command = fmt::format("kolo-train {}", fmt::join(arguments, " "));
  report.machine = machine_facts();
  report.runs = std::move(runs);
  report.skipped_iterations = options.skip_steps;
  std::fputs(report_text(report).c_str(), stdout);
  if (!options.report.empty()) {
    write_report(options.report, report);
    const std::string why_not = draw_plots(options.report);
    if (!why_not.empty()) std::fprintf(stderr, "kolo-train: %s\n", why_not.c_str());
    std::printf("\nThe whole report: %s/report.md\n", options.report.c_str());
  }
  std::fflush(stdout);
}

}  // namespace kolo::train
