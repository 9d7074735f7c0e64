// The commands `kolo-train evaluate` and `kolo-train predict`, in one process.
#pragma once

#include <string>

#include "train/inference/options.h"

namespace kolo::train {

// Returns the text for standard output. Throws DataError.
std::string run_inference(const InferenceOptions& options);

}  // namespace kolo::train
