// Facts about the machine and the build, for reports.
#pragma once

#include <map>
#include <string>

namespace kolo::train {

// Name to value: processor, cores, memory, system, kernel, compiler, kolo, commit, time. Missing
// values are "unknown".
std::map<std::string, std::string> machine_info();

}  // namespace kolo::train
