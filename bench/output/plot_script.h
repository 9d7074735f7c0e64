// The script that draws plots of JSON lines: plot.py, in ../share/kolo beside this program, built
// or installed.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

// Replaces this process by the script. Returns only if that fails, with the reason.
std::string become_plot(const std::vector<std::string>& arguments);

// Runs the script and waits for its end. Returns whether it succeeded; if not, an error message is
// on standard error.
bool run_plot(const std::vector<std::string>& arguments);

}  // namespace kolo::bench
