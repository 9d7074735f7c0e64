// The plots of a report, drawn by a Python script.
#pragma once

#include <string>
#include <vector>

namespace kolo::train {

// The path of a Python script, relative to the program, both built and installed.
std::string script_path(const std::string& name);

// The files that the script may write: "throughput.png", ...
std::vector<std::string> plot_files();

// The command that draws the plots of the report in `folder`: "python3 SCRIPT FOLDER".
std::string plot_command(const std::string& folder);

struct PlotResult {
  std::string why_none;     // and what to do; empty if all were drawn
  bool has_failed = false;  // false if python3 or matplotlib is missing
};

// Draws the plots of the report.json in `folder`: all of them, or none. Results do not depend on
// them. The script is ended with this process, and after two minutes. It leaves no incomplete
// files.
PlotResult draw_plots(const std::string& folder);

// Removes existing plots.
void remove_plots(const std::string& folder);

}  // namespace kolo::train
