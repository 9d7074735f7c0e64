// Initial weights from a file: of --resume, to go on with a run, or of --load, to start one.
#pragma once

#include <cstdint>

#include "collectives/communicator.h"
#include "tensor/arena.h"
#include "train/data/dataset.h"
#include "train/options.h"

namespace kolo::train {

// Checks --resume, --load and --save before any process is started. `data`: the training data.
// Throws DataError: a file is missing, damaged, of another model or of another run, nothing is left
// to train, or the folder of --save cannot be used.
void check_checkpoints(const Options& options, const Dataset& data);

// Reads the weights. `iterations`: of the whole training. Returns the iterations that are done; 0
// for --load. Throws DataError, as above. Without pipelines `stages` is null, and only rank 0
// calls. With pipelines `stages` holds all ranks, all call, and each gets its stage's weights.
std::int64_t read_initial_weights(const Options& options, const Dataset& data,
                                  tensor::Parameters& parameters, std::int64_t iterations,
                                  Communicator* stages);

}  // namespace kolo::train
