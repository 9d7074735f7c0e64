// Parser for the flags of a command of kolo-train.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kolo::train {

// Parses `arguments`: the command, then its flags. Returns the help text if it is asked for,
// otherwise "". Throws UsageError, with the flag that was probably meant.
std::string parse_flags(CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace kolo::train
