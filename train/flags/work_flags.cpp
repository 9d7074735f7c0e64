#include "train/flags/training_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "train/flags/flag_values.h"
#include "train/models/model.h"

namespace kolo::train {

void add_work_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
  const std::string group = "The work, the same for every arm";
  app.add_option(
         "--dataset", o.dataset,
         "digits (rendered), svhn:DIR (.mat files), mnist:DIR (IDX files), cifar10:DIR (binary "
         "files), imagefolder:DIR (JPEG and PNG), synthetic[:HxWxC[:CLASSES]] (random "
         "images) [digits]")
      ->check(known_dataset())
      ->group(group);
  app.add_option("--train-size,--train_size", o.train_size,
                 "training samples [digits, synthetic: 4096; files: all]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--test-size,--test_size", o.test_size,
                 "test samples [digits, synthetic: 1000; files: all]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--image-size,--image_size", o.image_size,
                 "side of the images of imagefolder, which are scaled and cut to squares [short "
                 "side of the first image, at most 224]")
      ->check(whole_number(1, 4096))
      ->group(group);
  app.add_option("--augment", o.augment,
                 "of training samples: none; crop: random shifts; crop,flip: mirrored at random, "
                 "too [none]")
      ->check(one_of("augmentation", {"none", "crop", "crop,flip"}))
      ->group(group);
  app.add_option("--model", o.model, fmt::format("{} [resnet50]", fmt::join(model_names(), ", ")))
      ->check(one_of("model", model_names()))
      ->group(group);
  app.add_option("--stem", o.stem, "of residual networks: imagenet, cifar [imagenet]")
      ->check(one_of("stem", {"imagenet", "cifar"}))
      ->group(group);
  app.add_option("--batch-size,--batch_size", o.batch_size, "samples per rank and iteration [64]")
      ->check(whole_number(1, 1 << 24))
      ->group(group);
  app.add_option("--global-batch,--global_batch", o.global_batch,
                 "samples of all ranks together per iteration, instead of --batch-size "
                 "[--ranks times --batch-size]")
      ->check(whole_number(1, 1 << 24))
      ->group(group);
  app.add_option("--epochs", o.epochs, "passes over the training data [8]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--steps", o.steps, "stop after this number of iterations; 0: whole epochs [0]")
      ->check(whole_number(0))
      ->group(group);
  app.add_option("--seed", o.seed, "seed of weights, data order and rendered data [1]")
      ->check(whole_number(0))
      ->group(group);
}

}  // namespace kolo::train
