#include "train/report/html.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "train/flags/flag_parser.h"
#include "train/flags/flag_values.h"
#include "train/options.h"
#include "train/report/plots.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

void require_report(const std::string& folder) {
  std::error_code ignored;
  for (const char* file : {"report.json", "report.md"}) {
    if (fs::exists(fs::path(folder) / file, ignored)) continue;
    throw UsageError(
        fmt::format("report: '{}' has no {}; expected a folder that compare, train "
                    "or an experiment wrote with --report",
                    folder, file));
  }
}

}  // namespace

HtmlOptions parse_html(const std::vector<std::string>& arguments) {
  HtmlOptions options;
  CLI::App app("Gathers reports into one HTML page, which needs no other file",
               "kolo-train report");
  app.add_option("RUN", options.folders,
                 "folders that compare, train or an experiment wrote with --report");
  app.add_option("--output", options.page, "the page [report.html]")
      ->check(nonempty_text("a file"))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  options.help = parse_flags(app, arguments);
  if (!options.help.empty()) return options;
  if (options.folders.empty())
    throw UsageError("report: expected one folder or several, as report-scale");
  for (const std::string& folder : options.folders) require_report(folder);
  return options;
}

void write_html(const HtmlOptions& options) {
  std::string script = script_path("html_report.py");
  if (!fs::exists(script)) throw UsageError(fmt::format("report: {} does not exist", script));
  std::vector<std::string> words{"python3", "-B", std::move(script), options.page};
  words.insert(words.end(), options.folders.begin(), options.folders.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp("python3", pointers.data());
  throw UsageError("report: it needs python3, which is not there; report.md has the same contents");
}

}  // namespace kolo::train
