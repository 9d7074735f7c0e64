// Command line of explain and tune, which show and use the planner's decisions.
#pragma once

#include "bench/cli/arguments.h"
#include "bench/cli/flags.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kolo::bench {

void add_explain(CLI::App& app, Arguments& result, RawOptions& typed);
void add_topology(CLI::App& app, Arguments& result, RawOptions& typed);
void add_tune(CLI::App& app, Arguments& result, RawOptions& typed);

// Call after parsing. std::invalid_argument with one clear message for wrong values. take_explained
// takes the collective; take_explained_sizes the sizes, once the type is known; take_grid tune's
// lists. The largest number of ranks and the first transport of the lists become `ranks` and
// `transport`.
void take_explained(Arguments& result);
void take_explained_sizes(Arguments& result);
void take_grid(const RawOptions& typed, Arguments& result);

}  // namespace kolo::bench
