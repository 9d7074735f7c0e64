// Commands that measure a collective: "allreduce" for Collective::kAllReduce, ...
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::bench {

const std::map<std::string, Collective>& collective_commands();
std::vector<std::string> collective_command_names();

// The command for an operation's own name: "allreduce" for "all_reduce". Any other word is returned
// unchanged.
std::string short_command(const std::string& name);
// The operation's own name; "" if it equals the command.
std::string long_command(const std::string& name);

// The command that measures a collective; "" if there is none.
std::string command_of(Collective collective);

// The help line of a command.
const char* describe(Collective collective);

// Commands for which the planner chooses: more than one algorithm, each with a predicted time.
std::vector<std::string> commands_with_a_choice();

}  // namespace kolo::bench
