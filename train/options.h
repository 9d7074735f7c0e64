// All flags of kolo-train in one struct, and their parser.
//
// All flags mean the same for both commands. Every flag except --strategies applies to all arms, so
// that arms differ in their strategy only. Flags of well-known PyTorch scripts are accepted as
// synonyms (--n_gpus, --batch_size, --train_size, ...).
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/options.h"
#include "train/loop/straggler.h"
#include "train/strategies/arm.h"
#include "train/strategies/gradient_options.h"

namespace kolo::train {

// Error: a flag is wrong. The message is one line with the flag and the valid values. The exit code
// is 2.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

enum class Command {
  train,   // one arm
  compare  // several arms in turns, each in new processes
};

struct Options {
  Command command = Command::compare;

  // The comparison.
  std::vector<Arm> arms;
  int ranks = 2;                   // workers; dedicated servers are additional processes
  int seeds = 1;                   // repetitions of every arm, with seeds seed, seed + 1, ...
  std::string python = "python3";  // the interpreter of PyTorch's arms

  // The work: the same for every arm.
  std::string dataset = "digits";  // see data/dataset.h
  std::int64_t train_size = 0;     // samples; 0: the default for digits, all for files
  std::int64_t test_size = 0;
  int image_size = 0;            // of imagefolder; 0: the default of the data set
  std::string augment = "none";  // none, crop or crop,flip (data/augmentation.h)
  std::string model = "resnet50";
  std::string stem = "imagenet";  // resnet50's: imagenet or cifar
  int batch_size = 0;             // samples per rank and iteration, as in PyTorch's scripts
  std::int64_t global_batch =
      0;  // samples of all ranks together; need not be a multiple of the ranks
  int epochs = 0;
  std::int64_t steps = 0;  // 0: whole epochs; else stop after this number of iterations
  double label_smoothing = 0;
  std::string optimizer = "sgd";  // sgd, adamw or lars
  double lr = 0;                  // at a global batch of lr_batch; scaled linearly to the real one
  std::int64_t lr_batch = 256;
  double momentum = 0.9;
  bool has_nesterov = false;
  double weight_decay = -1;  // below 0: the default of the optimizer
  double warmup_epochs = 1;  // the learning rate grows linearly from near 0
  std::string lr_schedule = "cosine";
  double lr_step_epochs = 0;  // of the schedule `step`; 0: a third of the epochs
  double lr_step_factor = 0.1;
  double lr_power = 2;     // of the schedule `polynomial`
  std::uint64_t seed = 1;  // for weights, data order and rendered data

  // Gradients: the same for every arm.
  std::int64_t micro_batch = 0;  // samples of a worker that are computed at once; 0: all
  GradientOptions gradients;
  bool has_sync_batch_norm = false;  // statistics over all workers

  // How it runs: the same for every arm.
  std::string transport = "auto";
  std::string shape;  // simulated network, in the form of KOLO_SHAPE; empty: use KOLO_SHAPE
  std::string backend = "auto";
  std::string precision = "float32";
  int threads = 0;                // compute threads per worker; 0: usable cores / ranks
  int loader_threads = 1;         // threads per worker that prepare samples
  std::int64_t bucket_bytes = 0;  // 0: the default of buckets.h
  std::int64_t first_bucket_bytes = 0;
  // Whether results depend on the order in which ranks' gradients are summed (options.h of
  // collectives). With kInvariant all synchronous arms end with the same bits.
  Reproducibility reproducibility = Reproducibility::kFast;
  bool progress_thread = false;  // a thread beside the training thread drives communication
  Straggle straggle;             // a worker that computes slower
  std::chrono::milliseconds timeout{60'000};  // for every wait for another rank

  // Measurements.
  int eval_every = 1;         // epochs between evaluations; the last epoch is always evaluated
  int hash_every = 20;        // iterations between checks of the replicas; 0: only at the end
  int skip_steps = 5;         // iterations at the start that do not count for speeds
  bool has_profile = false;   // times of each layer, on rank 0
  bool has_timeline = false;  // a Chrome trace of two iterations

  // Checkpoints (train/checkpoint).
  std::string save;    // folder; empty: none are written
  int save_every = 1;  // epochs between two
  int keep = 3;        // the last ones stay
  std::string resume;  // file, or folder whose last one counts; empty: start anew
  std::string load;    // safetensors file with the initial weights; empty: those of the seed

  // Where results go.
  std::string report = "";  // folder; empty: none

  // For the processes that the program starts itself.
  int events_fd = -1;  // rank 0 writes its events there
  int turns_fd = -1;   // all ranks read their turns there (experiment/turns.h); below 0: none

  // Samples of one iteration over all ranks.
  std::int64_t samples_per_iteration() const {
    return global_batch > 0 ? global_batch : std::int64_t{batch_size} * ranks;
  }
};

// Result of parsing: options, or only a text to print (--help, --version).
struct ParsedOptions {
  Options options;
  std::string text;
  bool is_text = false;
  std::vector<std::string> arguments;  // with the flags of the files of --config
};

// Parses `arguments`, without the program's name: "compare", "--ranks", "2", ... Fills in all
// defaults, so that no other code needs them. Throws UsageError, also for a flag that has no effect
// with the others.
ParsedOptions parse_options(const std::vector<std::string>& arguments);

// Checks the transport of the flag or, for auto, of the environment. Throws UsageError if it cannot
// connect processes (kolo-train's ranks are processes), or if it does not run on this machine.
void check_transport(const Options& options);

// The arguments of a process that runs one arm with one seed: those given by the user, then those
// that override them.
std::vector<std::string> arguments_of_rank(const std::vector<std::string>& given, const Arm& arm,
                                           std::uint64_t seed, int events_fd, int turns_fd);

}  // namespace kolo::train
