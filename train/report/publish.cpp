#include "train/report/publish.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "train/report/chrome_trace.h"
#include "train/report/epoch_files.h"
#include "train/report/machine_info.h"
#include "train/report/manifest.h"
#include "train/report/plots.h"

namespace kolo::train {
namespace {

// Writes report.md before and after the plots, so that it never links missing plots, even if this
// process is killed between.
PlotResult write_with_plots(const std::string& folder, const Publication& what) {
  if (!what.no_plots.empty()) {
    write_report(folder, what.json, what.markdown(what.no_plots), what.files);
    return {};
  }
  write_report(
      folder, what.json,
      what.markdown(fmt::format("no plots: kolo-train ended before they were drawn; run: {}",
                                plot_command(folder))),
      what.files);
  const PlotResult drawing = draw_plots(folder);
  write_markdown(folder, what.markdown(drawing.why_none));
  return drawing;
}

}  // namespace

void require_report_folder(const std::string& folder) {
  if (folder.empty()) return;
  try {
    require_writable(folder);
  } catch (const ReportError& error) {
    throw UsageError(error.what());
  }
}

void check_report_folder(const std::string& folder) {
  if (folder.empty()) return;
  require_report_folder(folder);
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(folder) / "report.json", ignored)) {
    std::fprintf(stderr, "kolo-train: --report %s: replaces the report that is there\n",
                 folder.c_str());
  }
}

std::string interrupted_report_folder(const std::string& folder) {
  std::string name = folder;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name + ".interrupted";
}

void publish(const std::string& folder, const Publication& what) {
  bool is_said = std::fputs(what.table.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  const int why = errno;
  PlotResult drawing;
  if (!folder.empty()) {
    drawing = write_with_plots(folder, what);
    if (!drawing.why_none.empty())
      std::fprintf(stderr, "kolo-train: %s\n", drawing.why_none.c_str());
    std::printf("\nThe whole report: %s/report.md\n", folder.c_str());
    for (const auto& [name, text] : what.files) {
      if (name.starts_with("timeline-"))
        std::printf("Timeline for ui.perfetto.dev: %s/%s\n", folder.c_str(), name.c_str());
    }
  }
  is_said = std::fflush(stdout) == 0 && is_said;
  if (!is_said) {
    throw ReportError(fmt::format("the table: cannot write it to standard output: {}",
                                  std::strerror(why == 0 ? errno : why)));
  }
  if (drawing.has_failed) throw ReportError("the report was written without plots");
}

void publish(const Options& options, const std::vector<std::string>& arguments,
             const ExperimentResult& outcome) {
  Report report;
  report.command = fmt::format("kolo-train {}", fmt::join(arguments, " "));
  report.machine = machine_info();
  report.runs = outcome.runs;
  report.unfinished = outcome.unfinished;
  report.incomplete = outcome.message;
  std::vector<UnfinishedRun> all = outcome.unfinished;
  for (const RunRecord& run : outcome.runs) all.push_back({run.arm, run.seed, run.epochs});
  std::map<std::string, std::string> files = epoch_files(all);
  files.merge(timeline_files(outcome.runs));
  files["manifest.json"] = manifest_json(options, report.command);
  publish(options.report,
          {report_text(report), report_json(report),
           [&report](const std::string& no_plots) {
             report.no_plots = no_plots;
             return report_markdown(report);
           },
           std::move(files), outcome.runs.empty() ? "no plots: no run has finished" : ""});
}

}  // namespace kolo::train
