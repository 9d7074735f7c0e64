#include "train/versus/initial_state.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"
#include "train/count_text.h"
#include "train/data/batch_plan.h"
#include "train/data/loader.h"
#include "train/experiment/training_setup.h"
#include "train/fetch/child_program.h"
#include "train/report/plots.h"
#include "transports/error.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = "torch_arm.py";
constexpr std::int64_t kExactInFloat = 1 << 24;  // a float has all whole numbers up to it

// Blocks the signals that end a program while the files are written, so that the folder is removed
// first.
class EndIsHeld {
 public:
  EndIsHeld() {
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&held_, signal);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~EndIsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndIsHeld(const EndIsHeld&) = delete;
  EndIsHeld& operator=(const EndIsHeld&) = delete;

  bool is_asked() const {
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      if (sigismember(&pending, signal) == 1) return true;
    }
    return false;
  }

 private:
  sigset_t held_{}, before_{};
};

void remove_folder(const std::string& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

std::string temporary_folder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) {
    throw UsageError(fmt::format(
        "TMPDIR: not a folder that can be used ({}); set it to another one", error.message()));
  }
  std::string name = (parent / "kolo-train-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error(ErrorCode::kSystem, kNoPeer,
                fmt::format("cannot create a temporary folder {}: {}; set TMPDIR to another one",
                            name, std::strerror(errno)));
  return name;
}

// Images and labels of a split, as two tensors. Images change from height x width x channels to
// channels x height x width. The labels are kept from the first tensor for the second one.
class SplitSource {
 public:
  SplitSource(std::string name, const Dataset& data) : name_(std::move(name)), data_(data) {}

  void add_to(std::vector<TensorSource>& tensors) {
    const ImageShape shape = data_.shape();
    tensors.push_back({name_ + "/images",
                       {data_.size(), shape.channels, shape.height, shape.width},
                       [this](std::span<float> out) { fill_images(out); }});
    tensors.push_back({name_ + "/labels", {data_.size()}, [this](std::span<float> out) {
                         std::ranges::copy(labels_, out.begin());
                       }});
  }

 private:
  void fill_images(std::span<float> out) {
    constexpr std::int64_t kAtOnce = 64;
    LoaderSettings settings;
    settings.is_shuffled = false;
    Loader loader(data_, BatchPlan(data_.size(), std::min(kAtOnce, data_.size()), 1), settings);
    const auto channels = static_cast<std::size_t>(data_.shape().channels);
    const std::size_t pixels = static_cast<std::size_t>(data_.shape().elements()) / channels;
    std::size_t at = 0;
    for (Minibatch batch; loader.next(batch);) {
      labels_.insert(labels_.end(), batch.labels.begin(), batch.labels.end());
      for (std::size_t sample = 0; sample < batch.samples.size(); ++sample) {
        const float* const image = batch.images.data() + sample * pixels * channels;
        for (std::size_t channel = 0; channel < channels; ++channel) {
          for (std::size_t pixel = 0; pixel < pixels; ++pixel)
            out[at++] = image[pixel * channels + channel];
        }
      }
    }
  }

  std::string name_;
  const Dataset& data_;
  std::vector<float> labels_;
};

void write_data(const TrainingSetup& setup, const std::string& path) {
  std::vector<TensorSource> tensors;
  SplitSource train("train", *setup.train_data()), test("test", *setup.test_data());
  train.add_to(tensors);
  test.add_to(tensors);
  const std::int64_t samples = setup.train_data()->size();
  tensors.push_back(
      {"order", {setup.epochs(), samples}, [&](std::span<float> out) {
         auto place = out.begin();
         for (int epoch = 0; epoch < setup.epochs(); ++epoch)
           place = std::ranges::copy(epoch_order(samples, setup.options().seed, epoch), place).out;
       }});
  tensors.push_back({"learning_rates", {setup.iterations()}, [&](std::span<float> out) {
                       for (std::size_t i = 0; i < out.size(); ++i)
                         out[i] = setup.learning_rate().at(static_cast<std::int64_t>(i));
                     }});
  write_safetensors(path, {}, tensors);
}

std::string setup_json(const TrainingSetup& setup) {
  const Options& o = setup.options();
  const ImageShape image = setup.train_data()->shape();
  const OptimizerSettings optimizer = setup.optimizer_settings();
  auto terms = setup.terms();
  // Terms of kolo alone.
  for (const char* const term : {"buckets", "order of sums", "progress", "loader threads"})
    terms.erase(term);
  terms["compute"] = fmt::format("PyTorch, threads per worker: {}", o.threads);
  const nlohmann::json json = {{"seed", o.seed},
                               {"model", o.model},
                               {"stem", o.stem},
                               {"classes", setup.classes()},
                               {"image", {image.height, image.width, image.channels}},
                               {"workers", o.ranks},
                               {"threads", o.threads},
                               {"timeout_s", static_cast<double>(o.timeout.count()) / 1000},
                               {"global_batch", setup.train_plan().global_batch()},
                               {"train_samples", setup.train_plan().samples()},
                               {"iterations", setup.iterations()},
                               {"iterations_per_epoch", setup.train_plan().iterations_per_epoch()},
                               {"epochs", setup.epochs()},
                               {"eval_every", o.eval_every},
                               {"skip_steps", o.skip_steps},
                               {"label_smoothing", o.label_smoothing},
                               {"optimizer",
                                {{"kind", name_of(optimizer.kind)},
                                 {"momentum", optimizer.momentum},
                                 {"weight_decay", optimizer.weight_decay},
                                 {"nesterov", optimizer.has_nesterov},
                                 {"beta1", optimizer.beta1},
                                 {"beta2", optimizer.beta2},
                                 {"epsilon", optimizer.epsilon}}},
                               {"terms", terms}};
  return json.dump(1) + "\n";
}

void write_seed(const Options& options, std::uint64_t seed, const fs::path& folder) {
  Options one = options;
  one.seed = seed;
  TrainingSetup setup(one);
  fs::create_directories(folder);
  write_data(setup, (folder / "data.safetensors").string());
  std::ofstream(folder / "setup.json") << setup_json(setup);
  write_checkpoint((folder / "weights.safetensors").string(), {}, 0,
                   tensors_of(setup.network().parameters(), {}));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

void check_torch_arms(const Options& options, std::int64_t train_samples) {
  std::vector<std::string> words{options.python, script_path(kScript), "--check"};
  std::string first;
  for (const Arm& arm : options.arms) {
    if (!arm.is_torch()) continue;
    words.push_back(arm.name());
    if (first.empty()) first = arm.name();
  }
  if (first.empty()) return;
  if (train_samples > kExactInFloat) {
    throw DataError(
        fmt::format("--strategies: {}: arms of PyTorch take at most {} of training "
                    "data, not {}; lower --train-size",
                    first, count_text(kExactInFloat, "sample"), train_samples));
  }
  const std::int64_t last = train_samples % options.samples_per_iteration();
  if (last > 0 && last < options.ranks) {
    throw DataError(
        fmt::format("--strategies: {}: with {} the last iteration of an epoch has {}, and PyTorch "
                    "needs one for "
                    "each of {}; change --train-size or --batch-size",
                    first, count_text(train_samples, "sample"), count_text(last, "sample"),
                    count_text(options.ranks, "worker")));
  }
  const ChildResult checked = run_child(words, Interrupt::both);
  if (checked.exit_code == 0) return;
  const std::string why = checked.exit_code == kProgramNotFound
                              ? fmt::format("there is no program {}", options.python)
                          : checked.output.empty() ? fmt::format("{} failed", options.python)
                                                   : first_line(checked.output);
  throw UsageError(fmt::format("--strategies: {}: {}", first, why));
}

InitialState::InitialState(const Options& options) : folder_(temporary_folder()) {
  const EndIsHeld held;
  try {
    for (int i = 0; i < options.seeds && !held.is_asked(); ++i) {
      const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
      write_seed(options, seed, fs::path(folder_) / fmt::format("seed-{}", seed));
    }
  } catch (...) {
    remove_folder(folder_);
    throw;
  }
  if (held.is_asked()) remove_folder(folder_);
}

InitialState::~InitialState() { remove_folder(folder_); }

std::vector<std::string> InitialState::command(const Options& options, const Arm& arm,
                                               std::uint64_t seed, int events_fd,
                                               int turns_fd) const {
  return {options.python,
          script_path(kScript),
          folder_,
          arm.name(),
          fmt::format("{}", seed),
          fmt::format("{}", events_fd),
          fmt::format("{}", turns_fd)};
}

}  // namespace kolo::train
