// What a saved result says of its run: machine, cores, kernel, versions, commit, command.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kolo::bench {

// {"machine", "cores", "kernel", "kolo", "commit", "command", "date"}. The commit is that of the
// build, with "-dirty" where the sources differed from it; "unknown" where they were no checkout.
nlohmann::ordered_json run_facts();

// "kolo 0.1.0, commit ee13fa1c10f5".
std::string own_version();

// How this process was started, on one line.
std::string own_command();

}  // namespace kolo::bench
