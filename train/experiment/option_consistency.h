// Check that all ranks have the same options.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collectives/communicator.h"
#include "train/options.h"

namespace kolo::train {

using Flags = std::vector<std::pair<const char*, std::string>>;

// The flags of a rank that affect its result, or the sequence of collective calls, with their
// values. Those of the first arm, and the kind of the data set without its folder.
Flags flags_of(const Options& options);

// Collective; call it first. Throws std::runtime_error with the first flag in which a rank differs
// from rank 0, and that rank. Otherwise ranks with a different seed or batch size would train on
// the wrong data without an error. The folder of a data set may differ between hosts; its contents
// are compared elsewhere.
void require_equal_options(const Options& options, Communicator& communicator);

}  // namespace kolo::train
