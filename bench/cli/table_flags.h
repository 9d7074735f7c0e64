// Command line of table.
#pragma once

#include "bench/cli/flags.h"

namespace kolo::bench {

void add_table(CLI::App& app, Arguments& result, RawOptions& typed);

// Checks the options. std::invalid_argument for those that every point would refuse; Error
// kUnavailable for a transport that this machine cannot run.
void take_table(const RawOptions& typed, int launched, Arguments& result);

}  // namespace kolo::bench
