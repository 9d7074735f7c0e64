// The plots of a report, which a script draws.
#pragma once

#include <string>
#include <vector>

namespace kolo::train {

/// "throughput.png", ...: what the script makes.
std::vector<std::string> plot_files();

/// Draws the plots of the report.json in `folder`. Returns an empty string, or why there are none:
/// what was measured does not depend on them. The script ends when this process does, and after two
/// minutes; nothing half-written stays.
std::string draw_plots(const std::string& folder);

}  // namespace kolo::train
