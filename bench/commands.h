// The commands that measure a collective: "allreduce" for Collective::kAllReduce, ...
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::bench {

const std::map<std::string, Collective>& collective_commands();
std::vector<std::string> collective_command_names();

// "allreduce"; "" for what no command measures.
std::string command_of(Collective collective);

// One line of help.
const char* describe(Collective collective);

// Those whose algorithms the planner compares: more than one, and each with a price.
std::vector<std::string> commands_with_a_choice();

}  // namespace kolo::bench
