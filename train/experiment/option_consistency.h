// Whether all ranks were told to do the same.
#pragma once

#include "collectives/communicator.h"
#include "train/options.h"

namespace kolo::train {

// Collective, before anything else. Throws std::runtime_error that names the first flag in which a
// rank differs from rank 0, and that rank: ranks with another seed or batch size would train
// without an error, on the wrong data. Where a data set's folder is may differ from host to host;
// what is in it is compared elsewhere.
void require_equal_options(const Options& options, Communicator& communicator);

}  // namespace kolo::train
