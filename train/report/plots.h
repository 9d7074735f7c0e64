// The plots of a report, which a script draws.
#pragma once

#include <string>
#include <vector>

namespace kolo::train {

// "throughput.png", ...: what the script makes.
std::vector<std::string> plot_files();

// How to draw the plots of the report in `folder` by hand: "python3 SCRIPT FOLDER".
std::string plot_command(const std::string& folder);

struct PlotResult {
  std::string why_none;     // and what to do; empty where all were drawn
  bool has_failed = false;  // a machine without python3 or matplotlib is no failure
};

// Draws the plots of the report.json in `folder`: all of them, or none stays. What was measured
// does not depend on them. The script ends when this process does, and after two minutes; nothing
// half-written stays.
PlotResult draw_plots(const std::string& folder);

// Removes those that are there.
void remove_plots(const std::string& folder);

}  // namespace kolo::train
