// Parser for the flags of a command of kolo-train.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kolo::train {

// For CLI11's reader of files: no value is a list, so commas and spaces belong to it.
constexpr char kNoDelimiter = '\x1f';

// Parses `arguments`: the command, then its flags. Returns the help text if it is asked for,
// otherwise "". Throws UsageError, with the flag that was probably meant.
std::string parse_flags(CLI::App& app, const std::vector<std::string>& arguments);

// `arguments` with the flags of the files of --config in place of --config, before the others,
// which win. Throws UsageError.
std::vector<std::string> with_config_flags(const std::vector<std::string>& arguments);

}  // namespace kolo::train
