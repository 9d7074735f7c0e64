// Check that all ranks have the same options.
#pragma once

#include "collectives/communicator.h"
#include "train/options.h"

namespace kolo::train {

// Collective; call it first. Throws std::runtime_error with the first flag in which a rank differs
// from rank 0, and that rank. Otherwise ranks with a different seed or batch size would train on
// the wrong data without an error. The folder of a data set may differ between hosts; its contents
// are compared elsewhere.
void require_equal_options(const Options& options, Communicator& communicator);

}  // namespace kolo::train
