#include "train/flags/training_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tensor/kernels/kernels.h"
#include "train/flags/flag_values.h"
#include "train/loop/buckets.h"
#include "transports/plugin/registration.h"
#include "transports/registry.h"

namespace kolo::train {
namespace {

std::vector<std::string> with_auto(const auto& names) {
  std::vector<std::string> words{"auto"};
  for (const auto& name : names) words.emplace_back(name);
  return words;
}

std::vector<std::string> reproducibility_names() {
  std::vector<std::string> names;
  for (const Reproducibility mode : kReproducibilities) names.emplace_back(to_string(mode));
  return names;
}

void add_computing_flags(CLI::App& app, Options& o, const std::string& group) {
  app.add_option("--backend", o.backend, "compute backend: auto, or one of this build [auto]")
      ->check(one_of("backend", with_auto(tensor::backend_names())))
      ->group(group);
  app.add_option("--precision", o.precision,
                 "format of the inputs of convolutions and linear layers: float32, or bfloat16 "
                 "(needs a processor with AVX512-BF16) [float32]")
      ->check(one_of("precision", {"float32", "bfloat16"}))
      ->group(group);
  app.add_option("--threads", o.threads, "compute threads per worker; 0: cores / ranks [0]")
      ->check(whole_number(0, 4096))
      ->group(group);
  app.add_option("--loader-threads,--loader_threads", o.loader_threads,
                 "threads per worker that read, decode and augment samples, beside --threads [1]")
      ->check(whole_number(1, 256))
      ->group(group);
}

}  // namespace

void add_running_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
  const std::string group = "How it runs, the same for every arm";
  app.add_option("--transport", o.transport,
                 "auto, a transport of this build, two as shm+tcp, or a library (./libx.so) [auto]")
      ->check([](const std::string& name) {
        // Two joined by + are checked when the transport is resolved.
        if (is_from_outside(name) || name.find('+') != std::string::npos) return std::string();
        return one_of("transport", with_auto(transport_names()))(name);
      })
      ->group(group);
  app.add_option("--shape", o.shape,
                 "simulated network: 1Gbit,1ms; hosts:10Gbit,50us between hosts only [KOLO_SHAPE]")
      ->group(group);
  add_computing_flags(app, o, group);
  app.add_option("--bucket-bytes,--bucket_bytes", o.bucket_bytes,
                 fmt::format("gradients sent together [{}]", BucketSizes{}.bytes))
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--first-bucket-bytes,--first_bucket_bytes", o.first_bucket_bytes,
                 fmt::format("size of the first bucket of each iteration [{}, at most "
                             "--bucket-bytes]",
                             BucketSizes{}.first_bytes))
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--reproducibility", typed.reproducibility,
                 "order of sums: fast, ordered, invariant (synchronous arms except pipelines get "
                 "the same bits) [fast]")
      ->check(one_of("reproducibility", reproducibility_names()))
      ->group(group);
  app.add_flag("--progress-thread", o.progress_thread,
               "make progress of communication in a separate thread [no]")
      ->group(group);
  app.add_flag("--no-progress-thread", typed.has_no_progress_thread,
               "make progress in the training thread (the default)")
      ->group(group);
  app.add_option("--straggle", typed.straggle,
                 "a worker that takes so much longer to compute: rank=1,factor=1.5 [none]")
      ->check([](const std::string& text) {
        try {
          parse_straggle(text);
          return std::string();
        } catch (const std::invalid_argument& error) {
          return std::string(error.what());
        }
      })
      ->group(group);
  app.add_option("--timeout", typed.timeout_s, "seconds to wait for another rank [60]")
      ->check(real_number(0, Least::excluded, 1e6))
      ->group(group);
}

}  // namespace kolo::train
