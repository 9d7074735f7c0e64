// Report of a comparison: the results as a table on the terminal, and as files.
//
//   report.json   all numbers: runs, epochs, ranks, iterations, terms, machine, command
//   report.md     the table, the meaning of each number, and the plots
//   *.png, *.svg  drawn from report.json by plot_report.py
//
// Files are written completely or not at all: each is written under another name, then renamed.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/experiment/run_record.h"

namespace kolo::train {

// Error: a folder cannot be written. The message names it and the reason.
class ReportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Report {
  std::string command;                         // the command line
  std::map<std::string, std::string> machine;  // machine_info()
  std::vector<RunRecord> runs;                 // all arms of a seed, then those of the next
  std::vector<UnfinishedRun> unfinished;       // runs that failed or were interrupted
  std::string incomplete;                      // why runs are missing; empty: none is
  std::string no_plots;                        // text in place of the plots; empty: there are plots

  // Number of iterations at the start of every run that do not count for speeds.
  std::int64_t skipped_iterations() const;
};

// Checks that the folder exists or can be created, and that files can be created in it; then
// restores the previous state. Called before the training. Returns why not, or nothing.
std::string why_not_writable(const std::string& folder);
// The same for the folder of --report. Throws ReportError.
void require_writable(const std::string& folder);

// Writes report.json, report.md and further files, and removes the plots of an earlier report.
// Throws ReportError.
void write_report(const std::string& folder, const std::string& json, const std::string& markdown,
                  const std::map<std::string, std::string>& files = {});

// Writes a file completely or not at all. Returns the reason of a failure; empty on success.
std::string try_to_write(const std::string& folder, const std::string& name,
                         const std::string& text);

// Writes report.md again.
void write_markdown(const std::string& folder, const std::string& markdown);

std::string report_json(const Report& report);
std::string report_markdown(const Report& report);

// The table and findings for the terminal.
std::string report_text(const Report& report);

}  // namespace kolo::train
