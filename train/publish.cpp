#include "train/publish.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "train/machine.h"
#include "train/plots.h"

namespace kolo::train {

void check_report_folder(const Options& options) {
  if (options.report.empty()) return;
  try {
    require_writable(options.report);
  } catch (const ReportError& error) {
    throw UsageError(error.what());
  }
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(options.report) / "report.json", ignored)) {
    std::fprintf(stderr,
                 "kolo-train: --report %s: holds a report already, which this one replaces\n",
                 options.report.c_str());
  }
}

void publish(const Options& options, const std::vector<std::string>& arguments,
             std::vector<RunRecord> runs, const std::string& incomplete) {
  Report report;
  report.command = fmt::format("kolo-train {}", fmt::join(arguments, " "));
  report.machine = machine_facts();
  report.runs = std::move(runs);
  report.incomplete = incomplete;
  bool is_said = std::fputs(report_text(report).c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  const int why = errno;
  if (!options.report.empty()) {
    write_report(options.report, report);
    const std::string why_not = draw_plots(options.report);
    if (!why_not.empty()) std::fprintf(stderr, "kolo-train: %s\n", why_not.c_str());
    std::printf("\nThe whole report: %s/report.md\n", options.report.c_str());
  }
  is_said = std::fflush(stdout) == 0 && is_said;
  if (!is_said) {
    throw ReportError(fmt::format("the table: cannot write it to standard output: {}",
                                  std::strerror(why == 0 ? errno : why)));
  }
}

}  // namespace kolo::train
