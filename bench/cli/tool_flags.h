// The options of the commands that measure no collective: limits, plot, peers, diff, timeline, draw
// and interpreter.
#pragma once

#include "bench/cli/flags.h"

namespace kolo::bench {

void add_tools(CLI::App& app, Arguments& result, RawOptions& typed);

// Checks what was typed for `result.command`, where it is one of them.
void take_tools(const RawOptions& typed, Arguments& result);

}  // namespace kolo::bench
