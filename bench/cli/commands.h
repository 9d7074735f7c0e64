// The commands that measure a collective: "allreduce" for Collective::kAllReduce, ...
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::bench {

const std::map<std::string, Collective>& collective_commands();
std::vector<std::string> collective_command_names();

// The name of a command that its operation's own spelling stands for: "allreduce" for "all_reduce".
// Any other word as it is.
std::string short_command(const std::string& name);
// That spelling; "" where there is but one.
std::string long_command(const std::string& name);

// "allreduce"; "" for what no command measures.
std::string command_of(Collective collective);

// One line of help.
const char* describe(Collective collective);

// Those whose algorithms the planner compares: more than one, and each with a price.
std::vector<std::string> commands_with_a_choice();

}  // namespace kolo::bench
