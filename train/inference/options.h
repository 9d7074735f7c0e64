// Flags of `kolo-train evaluate` and `kolo-train predict`, and their parser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kolo::train {

struct InferenceOptions {
  std::string command;              // "evaluate" or "predict"
  std::string load;                 // checkpoint, or a folder with checkpoints
  std::string model;                // empty: as the checkpoint says
  std::string stem;                 // likewise
  std::string dataset = "digits";   // evaluate
  std::int64_t test_size = 0;       // evaluate; 0: all
  std::uint64_t seed = 1;           // evaluate: of rendered data
  int batch_size = 64;              // evaluate
  std::vector<std::string> images;  // predict: files
  std::string backend = "auto";
  int threads = 0;
  std::string help;  // text to print, for --help; the other members then mean nothing
};

// `arguments`: the command and its flags. Throws UsageError.
InferenceOptions parse_inference(const std::vector<std::string>& arguments);

}  // namespace kolo::train
