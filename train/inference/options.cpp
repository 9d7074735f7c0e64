#include "train/inference/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "tensor/kernels/kernels.h"
#include "train/flags/flag_parser.h"
#include "train/flags/flag_values.h"
#include "train/models/model.h"
#include "train/options.h"

namespace kolo::train {
namespace {

void add_data_flags(CLI::App& app, InferenceOptions& o) {
  app.add_option("--dataset", o.dataset, "whose test samples are used, as in train [digits]")
      ->check(known_dataset());
  app.add_option("--test-size,--test_size", o.test_size,
                 "test samples [digits, synthetic: 1000; files: all]")
      ->check(whole_number(1));
  app.add_option("--seed", o.seed, "seed of rendered data [1]")->check(whole_number(0));
  app.add_option("--batch-size,--batch_size", o.batch_size, "samples at a time [64]")
      ->check(whole_number(1, 1 << 24));
}

}  // namespace

InferenceOptions parse_inference(const std::vector<std::string>& arguments) {
  InferenceOptions o;
  o.command = arguments[0];
  const bool is_evaluation = o.command == "evaluate";
  CLI::App app(is_evaluation ? "Evaluates a saved model on the test samples of a data set"
                             : "Prints the most probable classes of images",
               "kolo-train " + o.command);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--load", o.load, "safetensors file, or a folder of --save with its last one")
      ->check(nonempty_text("a file"));
  app.add_option("--model", o.model, "name of the model [as the file says]")
      ->check(one_of("model", model_names()));
  app.add_option("--stem", o.stem, "of residual networks: imagenet, cifar [as the file says]")
      ->check(one_of("stem", {"imagenet", "cifar"}));
  if (is_evaluation) add_data_flags(app, o);
  app.add_option("--backend", o.backend, "compute backend: auto, or one of this build [auto]");
  app.add_option("--threads", o.threads, "compute threads; 0: all cores [0]")
      ->check(whole_number(0, 4096));
  if (!is_evaluation)
    app.add_option("IMAGE", o.images,
                   "image files: JPEG, PNG, PPM or PGM; resized to the model's size")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  o.help = parse_flags(app, arguments);
  if (!o.help.empty()) return o;
  if (o.load.empty()) throw UsageError("--load is missing: the file with the weights");
  if (!is_evaluation && o.images.empty())
    throw UsageError("predict needs image files; see kolo-train predict --help");
  if (o.backend == "auto") o.backend = tensor::backend_names().front();
  if (o.threads == 0)
    o.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const bool is_rendered = o.dataset == "digits" || o.dataset.starts_with("synthetic");
  if (o.test_size == 0 && is_rendered) o.test_size = 1000;
  return o;
}

}  // namespace kolo::train
