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

// "--global-batch" of "--global_batch=64".
std::string flag_name(const std::string& word);

// Keys of a file that are no flags of the app.
enum class OtherKeys { refused, allowed };

void add_config_flag(CLI::App& app);

// `arguments` with the flags of the files of --config in place of --config, before the others,
// which win. A file is read once, as it may be a pipe or change. Throws UsageError.
std::vector<std::string> with_config_flags(const CLI::App& app,
                                           const std::vector<std::string>& arguments,
                                           OtherKeys others);

}  // namespace kolo::train
