// The guarantees for a trainer: hooks, memory, reproducible bits.

#include <algorithm>
#include <thread>

#include "test/support/catch.h"
#include "test/tensor/small_models.h"

namespace kolo::tensor::test {

namespace {

std::vector<SmallModel> some_models() {
  return {normalized("norm, addition and relu", {4, 3, 3}, 16, true),
          pooled("max pool 3x3 stride 2 padding 1", {7, 6, 2}, 16, 3, 2, 1),
          two_convolutions("7x7 stride 2 padding 3", {9, 8, 3}, 16, {7, 2, 3, false})};
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("every gradient is reported once, in arena order, when it is final") {
  const auto backend = GENERATE(from_range(backend_names()));
  for (const SmallModel& model : some_models()) {
    Network network = make_network(model, backend);
    const RandomBatch batch(model.image, 4, kClasses, 3);
    Parameters& p = network.parameters();
    std::vector<ParameterId> announced;
    std::vector<std::vector<float>> seen;
    network.forward(batch.view(), Mode::training);
    network.backward([&](ParameterId id) {
      announced.push_back(id);
      const Range range = p.list()[static_cast<std::size_t>(id)].range;
      seen.push_back(copy(p.gradients().subspan(static_cast<std::size_t>(range.begin),
                                                static_cast<std::size_t>(range.count))));
    });
    INFO(model.name << ", " << backend);
    REQUIRE(std::ranges::equal(announced, p.arena_order()));
    for (std::size_t i = 0; i < announced.size(); ++i) {
      const Range range = p.list()[static_cast<std::size_t>(announced[i])].range;
      CHECK(seen[i] == copy(p.gradients().subspan(static_cast<std::size_t>(range.begin),
                                                  static_cast<std::size_t>(range.count))));
    }
  }
}

TEST_CASE("the same inputs give the same bits") {
  const auto backend = GENERATE(from_range(backend_names()));
  const int threads = GENERATE(1, 2);
  for (const SmallModel& model : some_models()) {
    Network first = make_network(model, backend, threads);
    Network second = make_network(model, backend, threads);
    for (unsigned step = 0; step < 3; ++step) {
      const RandomBatch batch(model.image, 33, kClasses, step);
      for (Network* network : {&first, &second}) {
        network->forward(batch.view(), Mode::training);
        network->backward();
        const auto values = network->parameters().values();
        const auto gradients = network->parameters().gradients();
        for (std::size_t i = 0; i < values.size(); ++i) values[i] -= 0.1F * gradients[i];
      }
    }
    INFO(model.name << ", " << backend << ", " << threads << " threads");
    CHECK(copy(first.parameters().values()) == copy(second.parameters().values()));
    CHECK(copy(first.parameters().buffers()) == copy(second.parameters().buffers()));
  }
}

TEST_CASE("networks on threads of one process do not affect each other") {
  const auto backend = GENERATE(from_range(backend_names()));
  const int threads = GENERATE(1, 2);
  const SmallModel model = normalized("norm, addition and relu", {8, 8, 3}, 32, true);
  const auto train = [&](std::vector<float>& gradients) {
    Network network = make_network(model, backend, threads);
    for (unsigned step = 0; step < 3; ++step) {
      const RandomBatch batch(model.image, 17 + static_cast<int>(step), kClasses, step);
      network.forward(batch.view(), Mode::training);
      network.backward();
    }
    gradients = copy(network.parameters().gradients());
  };
  std::vector<float> alone, first, second;
  train(alone);
  std::thread one([&] { train(first); }), two([&] { train(second); });
  one.join();
  two.join();
  CHECK(first == alone);
  CHECK(second == alone);
}

TEST_CASE("memory does not grow after the first step, whatever batch sizes follow") {
  const auto backend = GENERATE(from_range(backend_names()));
  for (const SmallModel& model : some_models()) {
    Network network = make_network(model, backend);
    const RandomBatch full(model.image, 32, kClasses, 1);
    const RandomBatch last(model.image, 19, kClasses, 2);
    const auto step = [&](const RandomBatch& batch) {
      network.forward(batch.view(), Mode::training);
      network.backward();
      network.forward(batch.view(), Mode::evaluation);
    };
    step(full);
    step(full);
    const std::size_t held = network.pool().bytes_held();
    for (int i = 0; i < 5; ++i) {
      step(full);
      step(last);
    }
    INFO(model.name << ", " << backend);
    CHECK(network.pool().bytes_held() == held);
  }
}

TEST_CASE("evaluation keeps no activations, and changes nothing") {
  const auto backend = GENERATE(from_range(backend_names()));
  const SmallModel model = normalized("norm, addition and relu", {8, 8, 3}, 32, true);
  const RandomBatch batch(model.image, 16, kClasses, 1);
  Network network = make_network(model, backend);
  Network trained = make_network(model, backend);
  const auto buffers = copy(network.parameters().buffers());
  const Outcome once = network.forward(batch.view(), Mode::evaluation);
  const Outcome again = network.forward(batch.view(), Mode::evaluation);
  trained.forward(batch.view(), Mode::training);
  CHECK(once.loss == again.loss);
  CHECK(buffers == copy(network.parameters().buffers()));
  CHECK(network.pool().bytes_peak() < trained.pool().bytes_peak());
  CHECK_THROWS_WITH(network.backward(), "backward without a training forward before it");
}

TEST_CASE("label smoothing mixes the loss of the label with those of all classes") {
  const SmallModel model = two_convolutions("3x3 padded", {5, 6, 3}, 8, {3, 1, 1, false});
  RandomBatch batch(model.image, 4, kClasses, 1);
  Network network = make_network(model, "reference");
  const auto loss = [&](const RandomBatch& of) {
    return network.forward(of.view(), Mode::evaluation).loss;
  };
  double all = 0;
  for (std::int32_t label = 0; label < kClasses; ++label) {
    RandomBatch of_one = batch;
    std::ranges::fill(of_one.labels, label);
    all += loss(of_one) / kClasses;
  }
  const double plain = loss(batch);
  batch.label_smoothing = 0.25;
  CHECK(loss(batch) == Approx(0.75 * plain + 0.25 * all));
  batch.label_smoothing = 1;
  CHECK_THROWS_WITH(loss(batch),
                    "softmax_cross_entropy: the smoothing must be from 0 to below 1, not 1");
}

TEST_CASE("padding counts neither in the loss nor in gradients") {
  // Without normalisation samples are independent: 3 real ones with 2 of padding equal the 3 alone.
  const SmallModel model = two_convolutions("3x3 padded", {5, 6, 3}, 8, {3, 1, 1, false});
  RandomBatch padded(model.image, 5, kClasses, 1);
  RandomBatch real = padded;
  real.images.resize(real.images.size() / 5 * 3);
  real.labels.resize(3);
  padded.labels[3] = padded.labels[4] = -1;
  Network a = make_network(model, "reference");
  Network b = make_network(model, "reference");
  const Outcome with = a.forward(padded.view(), Mode::training);
  const Outcome without = b.forward(real.view(), Mode::training);
  CHECK(with.samples == 3);
  CHECK(with.correct == without.correct);
  CHECK(with.loss == Approx(without.loss));
  a.backward();
  b.backward();
  for (std::size_t i = 0; i < a.parameters().gradients().size(); ++i) {
    REQUIRE(a.parameters().gradients()[i] == Approx(b.parameters().gradients()[i]).margin(1e-6));
  }
}

TEST_CASE("gradients of shards add up to the gradient of the whole batch") {
  const SmallModel model = two_convolutions("3x3 padded", {5, 6, 3}, 8, {3, 1, 1, false});
  RandomBatch whole(model.image, 6, kClasses, 1);
  Network network = make_network(model, "reference");
  network.forward(whole.view(), Mode::training);
  network.backward();
  const auto expected = copy(network.parameters().gradients());
  std::vector<float> sum(expected.size());
  for (const std::size_t part : {0U, 1U}) {
    RandomBatch shard(model.image, 3, kClasses, 1);
    const std::size_t size = whole.images.size() / 2;
    std::copy_n(whole.images.begin() + static_cast<std::ptrdiff_t>(part * size), size,
                shard.images.begin());
    std::copy_n(whole.labels.begin() + static_cast<std::ptrdiff_t>(part * 3), 3,
                shard.labels.begin());
    shard.divisor = 6;
    network.forward(shard.view(), Mode::training);
    network.backward();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += network.parameters().gradients()[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    REQUIRE(sum[i] == Approx(expected[i]).margin(1e-6));
  }
}

}  // namespace kolo::tensor::test
