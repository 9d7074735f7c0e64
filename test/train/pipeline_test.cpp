// Pipelines: the cut into stages, the order of micro-batches, and the result of one rank.
#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <set>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "train/data/random.h"
#include "train/loop/hash.h"
#include "train/models/model.h"
#include "train/pipeline/partition.h"
#include "train/pipeline/pipeline.h"
#include "train/pipeline/schedule.h"
#include "train/strategies/strategy.h"

namespace {

using namespace kolo;
using namespace kolo::train;

const ModelSettings kSettings{.image = {8, 8, 3}, .classes = 5, .stem = Stem::cifar};
constexpr std::int64_t kBatchSamples = 12;
constexpr std::uint64_t kModelSeed = 3;

Minibatch make_batch() {
  Minibatch batch;
  batch.global_count = kBatchSamples;
  batch.samples.resize(kBatchSamples);
  std::iota(batch.samples.begin(), batch.samples.end(), 0);
  Random random(kModelSeed, Purpose::test, 0);
  for (std::int64_t i = 0; i < kBatchSamples; ++i) {
    batch.labels.push_back(static_cast<std::int32_t>(random.below(5)));
    for (std::int64_t pixel = 0; pixel < kSettings.image.count(); ++pixel)
      batch.images.push_back(random.uniform(-1, 1));
  }
  return batch;
}

struct Trained {
  std::uint64_t hash = 0;
  double loss = 0;
  std::array<double, 3> score{};
};

// Trains two iterations, one stage per rank.
Trained train_in_stages(const std::string& model, int stages, std::int64_t micro_batch) {
  Trained result;
  std::mutex mutex;
  test::run_ranks(stages, "inproc", [&](Communicator& world) {
    const PipelinePlace place(world.rank(), stages, stages);
    const Stage stage = cut_into_stages(model, kSettings, stages,
                                        micro_batch)[static_cast<std::size_t>(place.stage)];
    ModelSettings settings = kSettings;
    settings.parts = stage.parts;
    tensor::Parameters list;
    auto layers = make_model(model, list, settings);
    tensor::Network network(std::move(layers), std::move(list), stage.input,
                            tensor::make_backend(tensor::backend_names().front(), 1), kModelSeed);
    std::optional<Communicator> alone = world.split(world.rank());
    const StrategyContext context{
        *alone, network.parameters(), 1, {}, plan_buckets(network.parameters())};
    const auto strategy = make_strategy(Arm{}, context);
    const auto reducer = make_reducer(Arm{}, *strategy, context);
    PipelinePass pass(world, network, *reducer, place, {.micro_batch = micro_batch});
    const Minibatch batch = make_batch();
    double loss = 0;
    for (std::int64_t number = 1; number <= 2; ++number) {
      reducer->begin({0.1F, number});
      const TrainingPass::Result one = pass.run(batch, [](double) {});
      reducer->finish();
      loss = one.outcome.loss;
      test::expect(one.moved.sent == one.formula.sent, "bytes sent are those of the formula");
      test::expect(one.moved.received == one.formula.received, "bytes received, too");
    }
    const std::uint64_t hash = hash_of_stages(world, place, network.parameters().values());
    const std::array<double, 3> score = pass.evaluate(batch);
    const std::scoped_lock lock(mutex);
    if (place.is_last()) result.score = score;
    if (!place.is_first()) return;
    result.hash = hash;
    result.loss = loss;
  });
  return result;
}

}  // namespace

TEST_CASE(
    "a pipeline of any number of stages has the bits of one rank with the same micro-batches") {
  for (const std::string& model :
       test::all_or_few<std::string>({"small", "mlp", "cnn", "resnet18"}, {"small"})) {
    const int most = model == "resnet18" ? 4 : parts_of_model(model, kSettings);
    for (const std::int64_t micro_batch : {3, 4, 12}) {
      const Trained one = train_in_stages(model, 1, micro_batch);
      for (int stages = 2; stages <= most; ++stages) {
        if (model == "resnet18" && (stages == 3 || micro_batch != 4)) continue;  // slow
        INFO(model << ", " << stages << " stages, micro-batches of " << micro_batch);
        const Trained several = train_in_stages(model, stages, micro_batch);
        CHECK(several.hash == one.hash);
        CHECK(several.loss == one.loss);
        CHECK(several.score == one.score);
      }
    }
  }
}

TEST_CASE("stages are consecutive parts of the whole model, of about equal cost") {
  ModelSettings settings;
  constexpr std::int64_t kSamples = 8;
  for (const std::string& model : model_names()) {
    const std::vector<Stage> parts = parts_with_costs(model, settings, kSamples);
    double all = 0, largest = 0;
    for (const Stage& part : parts) {
      all += part.cost;
      largest = std::max(largest, part.cost);
    }
    tensor::Parameters whole;
    make_model(model, whole, settings);
    for (int count = 1; count <= std::min(4, static_cast<int>(parts.size())); ++count) {
      INFO(model << " in " << count << " stages");
      const std::vector<Stage> stages = cut_into_stages(model, settings, count, kSamples);
      REQUIRE(stages.size() == static_cast<std::size_t>(count));
      CHECK(stages.front().parts.begin == 0);
      CHECK(stages.back().parts.end == static_cast<int>(parts.size()));
      CHECK(stages.back().output == tensor::Shape{10});
      std::int64_t parameters = 0;
      for (std::size_t i = 0; i < stages.size(); ++i) {
        if (i > 0) CHECK(stages[i].parts.begin == stages[i - 1].parts.end);
        if (i > 0) CHECK(stages[i].input == stages[i - 1].output);
        CHECK(stages[i].cost <= all / count + largest);
        ModelSettings one = settings;
        one.parts = stages[i].parts;
        tensor::Parameters list;
        make_model(model, list, one);
        parameters += list.count();
      }
      CHECK(parameters == whole.count());
    }
  }
}

TEST_CASE("a model with fewer parts than stages is rejected") {
  CHECK_THROWS_WITH(cut_into_stages("mlp", {}, 4, 8),
                    ContainsSubstring("model 'mlp' has 3 parts, which cannot be divided into 4 "
                                      "stages"));
}

TEST_CASE("1F1B runs all micro-batches, and stage s of S keeps at most S - s of them") {
  for (int stages = 1; stages <= 5; ++stages) {
    for (const std::size_t micro_batches : {0, 1, 2, 4, 9}) {
      // A stage's step waits for the stage before (forward) or after (backward).
      std::vector<std::vector<PipelineStep>> steps;
      for (int stage = 0; stage < stages; ++stage)
        steps.push_back(one_forward_one_backward(stage, stages, micro_batches));
      std::vector<std::size_t> next(steps.size());
      std::set<std::pair<int, std::size_t>> forward, backward;  // (stage, micro-batch) done
      for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int stage = 0; stage < stages; ++stage) {
          auto& at = next[static_cast<std::size_t>(stage)];
          const auto& mine = steps[static_cast<std::size_t>(stage)];
          if (at == mine.size()) continue;
          const auto [is_backward, i] = mine[at];
          const bool is_ready = is_backward
                                    ? stage + 1 == stages || backward.contains({stage + 1, i})
                                    : stage == 0 || forward.contains({stage - 1, i});
          if (!is_ready) continue;
          if (is_backward) CHECK(forward.contains({stage, i}));
          (is_backward ? backward : forward).insert({stage, i});
          ++at;
          has_moved = true;
          const auto kept =
              std::ranges::count_if(forward, [&](const auto& one) { return one.first == stage; }) -
              std::ranges::count_if(backward, [&](const auto& one) { return one.first == stage; });
          CHECK(kept <= stages - stage);
        }
      }
      INFO(stages << " stages, " << micro_batches << " micro-batches");
      CHECK(backward.size() == static_cast<std::size_t>(stages) * micro_batches);
    }
  }
  CHECK(ideal_bubble(4, 4) == 3.0 / 7);
  CHECK(ideal_bubble(1, 4) == 0);
}
