// Every flag of kolo-train in one struct, and the one place that reads them.
//
// All flags mean the same for both commands, and every flag but --strategies holds for every arm:
// that is how a comparison stays one of strategies. Flags of well-known PyTorch scripts are
// accepted as synonyms (--n_gpus, --batch_size,
// --train_size, ...).
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/strategies/arm.h"

namespace kolo::train {

// A flag that is wrong. The message is one line that names the flag and what there is instead; the
// exit code is 2.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

enum class Command {
  train,   // one arm
  compare  // the arms one after the other, each in fresh processes
};

struct Options {
  Command command = Command::compare;

  // What is compared.
  std::vector<Arm> arms;
  int ranks = 2;  // workers; dedicated servers are processes beside them
  int seeds = 1;  // repetitions of every arm, with seeds seed, seed + 1, ...

  // The work: the same for every arm.
  std::string dataset = "digits";  // digits, or svhn:DIR
  std::int64_t train_size = 0;     // samples; 0: the command's choice for digits, all for files
  std::int64_t test_size = 0;
  std::string model = "resnet50";
  std::string stem = "imagenet";  // resnet50's: imagenet or cifar
  int batch_size = 0;             // samples per rank and iteration, as in PyTorch's scripts
  std::int64_t global_batch =
      0;  // samples of all ranks together; need not be a multiple of the ranks
  int epochs = 0;
  std::int64_t steps = 0;  // 0: whole epochs; else stop after so many iterations
  double lr = 0;           // at a global batch of lr_batch; scaled linearly to the real one
  std::int64_t lr_batch = 256;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  double warmup_epochs = 1;  // the learning rate grows linearly from near 0
  std::string lr_schedule = "cosine";
  std::uint64_t seed = 1;  // of weights, data order and rendered data

  // How it runs: the same for every arm.
  std::string transport = "auto";
  std::string shape;  // the network to play, as KOLO_SHAPE takes it; empty: as it says
  std::string backend = "auto";
  int threads = 0;                // compute threads per worker; 0: usable cores / ranks
  std::int64_t bucket_bytes = 0;  // 0: the default of buckets.h
  std::int64_t first_bucket_bytes = 0;
  bool progress_thread = false;  // a thread beside the training thread drives communication
  std::chrono::milliseconds timeout{60'000};  // of every wait for another rank

  // What is watched.
  int eval_every = 1;   // epochs between evaluations; the last epoch is always evaluated
  int hash_every = 20;  // iterations between proofs that the replicas are equal; 0: only at the end
  int skip_steps = 5;   // iterations at the start that do not count for speeds

  // Where results go.
  std::string report = "";  // folder; empty: none

  // For the processes that the program starts itself.
  int events_fd = -1;  // rank 0 writes its events there

  // Samples of one iteration over all ranks.
  std::int64_t samples_per_iteration() const {
    return global_batch > 0 ? global_batch : std::int64_t{batch_size} * ranks;
  }
};

// What parsing came to: options, or a text to print (--help, --version) and nothing to do.
struct ParsedOptions {
  Options options;
  std::string text;
  bool is_text = false;
};

// `arguments` without the program's name: "compare", "--ranks", "2", ... Fills every default, so
// that nothing below has to know one. Throws UsageError, also for a flag that was given and has no
// use beside the others.
ParsedOptions parse_options(const std::vector<std::string>& arguments);

// Throws UsageError where kolo-train's ranks, which are processes, cannot meet over the transport
// that the flag or, for auto, the environment names, or this machine cannot run it. Reads the
// environment.
void check_transport(const Options& options);

// The arguments that make a process run one arm with one seed: what was given, and then what
// overrides it.
std::vector<std::string> arguments_of_rank(const std::vector<std::string>& given, const Arm& arm,
                                           std::uint64_t seed, int events_fd);

}  // namespace kolo::train
