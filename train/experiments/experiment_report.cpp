#include "train/experiments/experiment_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "train/experiment/comparability.h"
#include "train/experiment/run_record_json.h"
#include "train/report/machine_info.h"
#include "train/report/table.h"

namespace kolo::train {
namespace {

using Cells = std::vector<std::string>;

bool has_arms(const Summary& summary) {
  return std::ranges::any_of(summary.rows, [](const Row& row) { return !row.arm.empty(); });
}

bool has_notes(const Summary& summary) {
  return std::ranges::any_of(summary.rows, [](const Row& row) { return !row.note.empty(); });
}

Cells heading_of(const Summary& summary) {
  Cells cells;
  if (has_arms(summary)) cells.emplace_back("arm");
  for (const Column& column : summary.columns) cells.push_back(column.label);
  if (has_notes(summary)) cells.emplace_back("note");
  return cells;
}

Cells cells_of(const Summary& summary, const Row& row) {
  Cells cells;
  if (has_arms(summary)) cells.push_back(row.arm);
  for (const Column& column : summary.columns) {
    const auto found = row.numbers.find(column.key);
    const auto seeds = row.of_seeds.find(column.key);
    if (found == row.numbers.end()) {
      cells.emplace_back("-");
    } else if (seeds == row.of_seeds.end()) {
      cells.push_back(fmt::format("{:.{}f}", found->second, column.digits));
    } else {
      cells.push_back(with_spread(seeds->second, column.digits));
    }
  }
  if (has_notes(summary)) cells.push_back(row.note);
  return cells;
}

// Numbers to the right, the arm and the note to the left.
std::string line_of(const Summary& summary, const Cells& cells,
                    const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool is_text =
        (i == 0 && has_arms(summary)) || (i + 1 == cells.size() && has_notes(summary));
    line += fmt::format(fmt::runtime(is_text ? "{}{:<{}}" : "{}{:>{}}"), i == 0 ? "" : "  ",
                        cells[i], widths[i]);
  }
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Of all points.
std::map<std::string, std::string> shared_terms_of(const std::vector<PointResult>& results) {
  std::vector<RunRecord> runs;
  for (const PointResult& result : results)
    runs.insert(runs.end(), result.runs.begin(), result.runs.end());
  return shared_terms(runs);
}

std::string markdown_line(const Cells& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string table_markdown(const Summary& summary) {
  const Cells heading = heading_of(summary);
  Cells rulers(heading.size(), "---:");
  if (has_arms(summary)) rulers.front() = "---";
  if (has_notes(summary)) rulers.back() = "---";
  std::string text = markdown_line(heading) + fmt::format("|{}|\n", fmt::join(rulers, "|"));
  for (const Row& row : summary.rows) text += markdown_line(cells_of(summary, row));
  return text;
}

std::string facts_markdown(const std::string& heading,
                           const std::map<std::string, std::string>& facts) {
  std::string text = fmt::format("| {} | |\n|---|---|\n", heading);
  for (const auto& [name, value] : facts) text += fmt::format("| {} | {} |\n", name, value);
  return text;
}

}  // namespace

std::string experiment_text(const ExperimentReport& report) {
  std::vector<Cells> lines{heading_of(report.summary)};
  for (const Row& row : report.summary.rows) lines.push_back(cells_of(report.summary, row));
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (const Cells& cells : lines) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text = report.summary.title + "\n\n";
  for (const Cells& cells : lines) text += line_of(report.summary, cells, widths);
  text += "\n";
  for (const std::string& sentence : report.summary.findings) text += sentence + "\n";
  return text;
}

std::string experiment_json(const ExperimentReport& report) {
  nlohmann::json json{{"format", "kolo-experiment-1"},
                      {"experiment", report.experiment},
                      {"title", report.summary.title},
                      {"command", report.command},
                      {"machine", machine_info()},
                      {"findings", report.summary.findings},
                      {"meaning", report.summary.meaning},
                      {"part_names", kPartNames},
                      {"terms", shared_terms_of(report.results)},
                      {"columns", nlohmann::json::array()},
                      {"rows", nlohmann::json::array()},
                      {"points", nlohmann::json::array()}};
  for (const Column& column : report.summary.columns)
    json["columns"].push_back({{"key", column.key}, {"label", column.label}});
  for (const Row& row : report.summary.rows) {
    nlohmann::json one = row.numbers;
    one["arm"] = row.arm;
    one["note"] = row.note;
    json["rows"].push_back(std::move(one));
  }
  for (const PointResult& result : report.results)
    json["points"].push_back({{"name", result.name},
                              {"value", result.value},
                              {"no_memory", result.no_memory},
                              {"made_by", result.made_by},
                              {"runs", result.runs}});
  return json.dump(1) + "\n";
}

std::string experiment_markdown(const ExperimentReport& report, const std::string& no_plots) {
  const Summary& summary = report.summary;
  std::string text = fmt::format("# {}\n\n", summary.title);
  for (const std::string& sentence : summary.findings) text += fmt::format("- {}\n", sentence);
  text += "\n" + table_markdown(summary) + "\n";
  for (const std::string& plot : summary.plots) {
    text += no_plots.empty() ? fmt::format("![{}]({}.png)\n", summary.title, plot)
                             : fmt::format("*{}*\n", no_plots);
  }
  text += fmt::format("\n## What the numbers mean\n\n{}\n\n## What was run\n\n    {}\n\n",
                      summary.meaning, report.command);
  text += facts_markdown("the same at every point", shared_terms_of(report.results));
  text += "\n" + facts_markdown("made with", machine_info());
  return text + "\nreport.json has every number, of every rank and iteration.\n";
}

}  // namespace kolo::train
