// Options of the commands that measure no collective: limits, plot, peers, diff, timeline, draw,
// interpreter and table.
#pragma once

#include "bench/cli/flags.h"

namespace kolo::bench {

void add_tools(CLI::App& app, Arguments& result, RawOptions& typed);

// Checks the options of these commands, if `result.command` is one of them.
// `launched`: as for parse_arguments.
void take_tools(const RawOptions& typed, int launched, Arguments& result);

}  // namespace kolo::bench
