#include "train/report/publish.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "train/report/machine_info.h"
#include "train/report/plots.h"

namespace kolo::train {
namespace {

// Writes report.md before and after the plots, so that it never links missing plots, even if this
// process is killed between.
PlotResult write_with_plots(const std::string& folder, Report report) {
  report.no_plots = fmt::format("no plots: kolo-train ended before they were drawn; run: {}",
                                plot_command(folder));
  write_report(folder, report);
  const PlotResult drawing = draw_plots(folder);
  report.no_plots = drawing.why_none;
  write_markdown(folder, report);
  return drawing;
}

}  // namespace

void check_report_folder(const Options& options) {
  if (options.report.empty()) return;
  try {
    require_writable(options.report);
  } catch (const ReportError& error) {
    throw UsageError(error.what());
  }
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(options.report) / "report.json", ignored)) {
    std::fprintf(stderr, "kolo-train: --report %s: replaces the report that is there\n",
                 options.report.c_str());
  }
}

void publish(const Options& options, const std::vector<std::string>& arguments,
             std::vector<RunRecord> runs, const std::string& incomplete) {
  Report report;
  report.command = fmt::format("kolo-train {}", fmt::join(arguments, " "));
  report.machine = machine_info();
  report.runs = std::move(runs);
  report.incomplete = incomplete;
  bool is_said = std::fputs(report_text(report).c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  const int why = errno;
  PlotResult drawing;
  if (!options.report.empty()) {
    drawing = write_with_plots(options.report, report);
    if (!drawing.why_none.empty())
      std::fprintf(stderr, "kolo-train: %s\n", drawing.why_none.c_str());
    std::printf("\nThe whole report: %s/report.md\n", options.report.c_str());
  }
  is_said = std::fflush(stdout) == 0 && is_said;
  if (!is_said) {
    throw ReportError(fmt::format("the table: cannot write it to standard output: {}",
                                  std::strerror(why == 0 ? errno : why)));
  }
  if (drawing.has_failed) throw ReportError("the report was written without plots");
}

}  // namespace kolo::train
