// Loader: the right samples in the right order, the end, failures, and stopping.
#include "train/data/loader.h"

#include <atomic>
#include <future>
#include <map>
#include <stdexcept>
#include <string>

#include "test/support/catch.h"

namespace kolo::train {
namespace {

// 2x2 pictures of three channels: every byte of sample i is i, 100 + i, 200 + i by channel; the
// label is i mod 7.
class Counting : public Dataset {
 public:
  explicit Counting(std::int64_t size) : size_(size) {}
  std::string description() const override { return "counting"; }
  std::int64_t size() const override { return size_; }
  int classes() const override { return 7; }
  ImageShape shape() const override { return {2, 2, 3}; }
  Normalization normalization() const override { return {{0, 100, 100}, {1, 1, 2}}; }
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    check_sample_request(*this, index, pixels);
    for (std::size_t at = 0; at < pixels.size(); ++at) {
      pixels[at] = static_cast<std::uint8_t>(100 * static_cast<std::int64_t>(at % 3) + index);
    }
    return static_cast<int>(index % 7);
  }

 private:
  std::int64_t size_;
};

class Failing : public Counting {
 public:
  using Counting::Counting;
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    if (index == 5) throw DataError("sample 5 cannot be read");
    return Counting::get(index, pixels);
  }
};

// A data set that blocks until it is released, so that the loader makes no progress.
class Stuck : public Counting {
 public:
  Stuck(std::int64_t size, std::shared_future<void> gate)
      : Counting(size), gate_(std::move(gate)) {}
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    gate_.wait();
    return Counting::get(index, pixels);
  }

 private:
  std::shared_future<void> gate_;
};

TEST_CASE("a batch has this rank's samples, normalised, in the order of the epoch") {
  const Counting dataset(23);
  const BatchPlan plan(23, 8, 3);
  for (int rank = 0; rank < 3; ++rank) {
    Loader loader(dataset, plan, {.seed = 4, .rank = rank, .first_epoch = 1, .epochs = 2});
    Minibatch batch;
    for (std::int64_t epoch = 1; epoch <= 2; ++epoch) {
      const auto order = epoch_order(23, 4, epoch);
      for (std::int64_t iteration = 0; iteration < 3; ++iteration) {
        REQUIRE(loader.next(batch));
        const OrderRange share = plan.local(iteration, rank);
        REQUIRE(batch.epoch == epoch);
        REQUIRE(batch.iteration == iteration);
        REQUIRE(batch.global_count == (iteration < 2 ? 8 : 7));
        REQUIRE(batch.labels.size() == static_cast<std::size_t>(share.count));
        REQUIRE(batch.images.size() == batch.labels.size() * 12);
        for (std::size_t i = 0; i < batch.labels.size(); ++i) {
          const std::int64_t sample = order[static_cast<std::size_t>(share.begin) + i];
          const auto value = static_cast<float>(sample);
          REQUIRE(batch.samples[i] == sample);
          REQUIRE(batch.labels[i] == sample % 7);
          REQUIRE(batch.images[i * 12] == value);
          REQUIRE(batch.images[i * 12 + 4] == value);
          REQUIRE(batch.images[i * 12 + 11] == 50 + value / 2);
        }
      }
    }
    CHECK_FALSE(loader.next(batch));
    CHECK_FALSE(loader.next(batch));
  }
}

TEST_CASE("evaluation visits each sample exactly once, whatever the number of ranks") {
  const Counting dataset(50);
  for (const int ranks : {1, 2, 3, 7}) {
    std::map<std::int64_t, int> visits;
    for (int rank = 0; rank < ranks; ++rank) {
      Loader loader(dataset, BatchPlan(50, 16, ranks), {.rank = rank, .is_shuffled = false});
      Minibatch batch;
      while (loader.next(batch)) {
        for (const std::int64_t sample : batch.samples) ++visits[sample];
      }
    }
    CHECK(visits.size() == 50);
    for (const auto& [sample, count] : visits) REQUIRE(count == 1);
  }
}

TEST_CASE("a rank without a share of the last batch gets an empty batch") {
  const Counting dataset(9);
  Loader loader(dataset, BatchPlan(9, 4, 4), {.rank = 0});
  Minibatch batch;
  REQUIRE(loader.next(batch));
  REQUIRE(loader.next(batch));
  REQUIRE(loader.next(batch));
  CHECK(batch.labels.empty());
  CHECK(batch.images.empty());
  CHECK(batch.global_count == 1);
  CHECK_FALSE(loader.next(batch));
}

TEST_CASE(
    "an exception while preparing a batch is rethrown to the consumer after the earlier batches") {
  const Failing dataset(16);
  Loader loader(dataset, BatchPlan(16, 4, 1), {.is_shuffled = false});
  Minibatch batch;
  REQUIRE(loader.next(batch));
  CHECK_THROWS_WITH(loader.next(batch), "sample 5 cannot be read");
  CHECK_THROWS_WITH(loader.next(batch), "sample 5 cannot be read");
}

TEST_CASE("batches do not depend on the number of threads") {
  const Counting dataset(100);
  for (const int threads : {2, 3, 50}) {
    const LoaderSettings settings{.epochs = 2, .augmentation = {1, true}};
    LoaderSettings shared = settings;
    shared.threads = threads;
    Loader alone(dataset, BatchPlan(100, 17, 1), settings);
    Loader several(dataset, BatchPlan(100, 17, 1), shared);
    Minibatch expected, batch;
    while (alone.next(expected)) {
      REQUIRE(several.next(batch));
      REQUIRE(batch.samples == expected.samples);
      REQUIRE(batch.labels == expected.labels);
      REQUIRE(batch.images == expected.images);
    }
    CHECK_FALSE(several.next(batch));
  }
}

TEST_CASE("of several samples that fail, the first one is reported, by every number of threads") {
  class AllFailing : public Counting {
   public:
    using Counting::Counting;
    int get(std::int64_t index, std::span<std::uint8_t>) const override {
      throw DataError("sample " + std::to_string(index) + " cannot be read");
    }
  };
  const AllFailing dataset(32);
  for (const int threads : {1, 4}) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      Loader loader(dataset, BatchPlan(32, 16, 1), {.is_shuffled = false, .threads = threads});
      Minibatch batch;
      REQUIRE_THROWS_WITH(loader.next(batch), "sample 0 cannot be read");
    }
  }
}

TEST_CASE("a loader can be destroyed at any time") {
  const int threads = GENERATE(1, 4);
  const Counting dataset(1000);
  const BatchPlan plan(1000, 10, 1);
  for (int batches = 0; batches < 6; ++batches) {
    Loader loader(dataset, plan, {.epochs = 1000, .depth = 2, .threads = threads});
    Minibatch batch;
    for (int i = 0; i < batches; ++i) REQUIRE(loader.next(batch));
  }
}

TEST_CASE("next() ends at its timeout") {
  std::promise<void> gate;
  const Stuck dataset(4, gate.get_future().share());
  Loader loader(dataset, BatchPlan(4, 2, 1), {.timeout_ms = 20});
  Minibatch batch;
  CHECK_THROWS_WITH(loader.next(batch), "rank 0: counting prepared no batch within 20 ms");
  gate.set_value();
}

TEST_CASE("invalid loader settings are rejected") {
  const Counting dataset(8);
  CHECK_THROWS_AS(Loader(dataset, BatchPlan(9, 4, 1), {}), std::invalid_argument);
  CHECK_THROWS_AS(Loader(dataset, BatchPlan(8, 4, 2), {.rank = 2}), std::invalid_argument);
  CHECK_THROWS_AS(Loader(dataset, BatchPlan(8, 4, 2), {.depth = 0}), std::invalid_argument);
  CHECK_THROWS_AS(Loader(dataset, BatchPlan(8, 4, 2), {.threads = 0}), std::invalid_argument);
}

TEST_CASE(
    "augmentation shifts a picture, repeats its border, and depends only on seed, epoch and "
    "index") {
  const ImageShape shape{5, 4, 1};
  const std::string original = "abcdefghijklmnopqrst";
  const auto shifted = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t index,
                           int padding) {
    std::vector<std::uint8_t> pixels(original.begin(), original.end());
    augment({padding, false}, shape, seed, epoch, index, pixels);
    return std::string(pixels.begin(), pixels.end());
  };
  CHECK(shifted(1, 0, 0, 0) == original);
  CHECK(shifted(1, 2, 3, 2) == shifted(1, 2, 3, 2));
  std::map<std::string, int> kinds;
  for (std::int64_t index = 0; index < 200; ++index) ++kinds[shifted(1, 0, index, 1)];
  CHECK(kinds.size() == 9);
  CHECK(kinds.count(original) == 1);
  CHECK(kinds.count("aabcaabceefgiijkmmno") == 1);  // one down, one to the right
}

TEST_CASE("augmentation mirrors half of the pictures, by whole pixels") {
  const ImageShape shape{2, 3, 2};
  const std::string original = "aAbBcCdDeEfF";
  std::map<std::string, int> kinds;
  for (std::int64_t index = 0; index < 400; ++index) {
    std::vector<std::uint8_t> pixels(original.begin(), original.end());
    augment({0, true}, shape, 1, 5, index, pixels);
    ++kinds[std::string(pixels.begin(), pixels.end())];
  }
  REQUIRE(kinds.size() == 2);
  CHECK(kinds.at(original) > 150);
  CHECK(kinds.at("cCbBaAfFeEdD") > 150);
}

TEST_CASE("the names of augmentations give an eighth of the side as padding") {
  CHECK(augmentation_from("none", {32, 32, 3}).crop_padding == 0);
  CHECK(augmentation_from("crop", {32, 32, 3}).crop_padding == 4);
  CHECK(augmentation_from("crop", {224, 256, 3}).crop_padding == 28);
  CHECK_FALSE(augmentation_from("crop", {32, 32, 3}).has_flip);
  CHECK(augmentation_from("crop,flip", {4, 4, 1}).crop_padding == 1);
  CHECK(augmentation_from("crop,flip", {4, 4, 1}).has_flip);
}

}  // namespace
}  // namespace kolo::train
