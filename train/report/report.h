// The report of a comparison: what was measured, as a table on the terminal, and as files.
//
//   report.json   every number there is: runs, epochs, ranks, iterations, terms, machine, command
//   report.md     the table, what each number means and how it was made, and the plots
//   *.png, *.svg  drawn from report.json by plot_report.py
//
// Files appear whole or not at all: each is written under another name, and renamed.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/experiment/run_record.h"

namespace kolo::train {

// A folder that cannot be written. The message names it and the reason.
class ReportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Report {
  std::string command;                         // as it was typed
  std::map<std::string, std::string> machine;  // machine_info()
  std::vector<RunRecord> runs;                 // all arms of a seed, then those of the next
  std::string incomplete;                      // why there are not more runs; empty: all are there
  std::string no_plots;  // what report.md has in their place; empty: they are there

  // At the start of every run, not counted for speeds.
  std::int64_t skipped_iterations() const;
};

// Proves that the folder can be made, if it is not there, and that files can be made in it; leaves
// everything as it was. Called before anything is trained. Throws ReportError.
void require_writable(const std::string& folder);

// Writes report.json and report.md. Throws ReportError.
void write_report(const std::string& folder, const Report& report);

// report.md alone, once more.
void write_markdown(const std::string& folder, const Report& report);

std::string report_json(const Report& report);
std::string report_markdown(const Report& report);

// For the terminal.
std::string report_text(const Report& report);

}  // namespace kolo::train
