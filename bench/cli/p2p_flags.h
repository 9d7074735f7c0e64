// Command line of kolo-bench p2p.
#pragma once

#include "bench/cli/arguments.h"
#include "bench/cli/flags.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kolo::bench {

void add_p2p(CLI::App& app, Arguments& result, RawOptions& typed);

// Checks the options that only p2p has.
void take_p2p(const RawOptions& typed, Arguments& result);

}  // namespace kolo::bench
