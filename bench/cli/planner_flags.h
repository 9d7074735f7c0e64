// The command line of explain and tune, which ask what the planner knows.
#pragma once

#include "bench/cli/arguments.h"
#include "bench/cli/flags.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kolo::bench {

// An option of tune's ranks alone, which tune appends as it starts them.
inline constexpr const char* kPointsFlag = "--points";

void add_explain(CLI::App& app, Arguments& result, RawOptions& typed);
void add_tune(CLI::App& app, Arguments& result, RawOptions& typed);

// After add_...: std::invalid_argument with one clear message for what cannot be. The collective;
// the sizes, once the type is known; tune's lists, whose first become ranks and transport.
void take_explained(Arguments& result);
void take_explained_sizes(Arguments& result);
void take_grid(const RawOptions& typed, Arguments& result);

}  // namespace kolo::bench
