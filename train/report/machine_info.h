// Where and with what a report was made.
#pragma once

#include <map>
#include <string>

namespace kolo::train {

// Name to value: processor, cores, memory, system, kernel, compiler, kolo, commit, time. What
// cannot be found out is "unknown".
std::map<std::string, std::string> machine_info();

}  // namespace kolo::train
