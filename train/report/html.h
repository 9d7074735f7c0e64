// The command `kolo-train report`: one HTML page of several reports.
#pragma once

#include <string>
#include <vector>

namespace kolo::train {

struct HtmlOptions {
  std::vector<std::string> folders;  // each with report.json and report.md
  std::string page = "report.html";
  std::string help;  // text to print, for --help; the others then mean nothing
};

// `arguments`: "report", the folders and flags. Throws UsageError, also for a folder without a
// report.
HtmlOptions parse_html(const std::vector<std::string>& arguments);

// Continues as html_report.py, so it returns only by an exception: UsageError if that or python3
// is missing.
[[noreturn]] void write_html(const HtmlOptions& options);

}  // namespace kolo::train
