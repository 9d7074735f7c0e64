// Batch normalisation over several replicas: the gradients of one network with all samples.

#include <algorithm>
#include <barrier>
#include <cmath>
#include <mutex>
#include <numeric>
#include <thread>

#include "test/support/catch.h"
#include "test/tensor/small_models.h"

namespace kolo::tensor::test {
namespace {

// Sums over threads.
class Sum {
 public:
  explicit Sum(int replicas) : barrier_(replicas) {}

  void operator()(std::span<double> values) {
    {
      const std::scoped_lock lock(mutex_);
      sums_.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) sums_[i] += values[i];
    }
    barrier_.arrive_and_wait();
    std::ranges::copy(sums_, values.begin());
    barrier_.arrive_and_wait();
    {
      const std::scoped_lock lock(mutex_);
      sums_.clear();
    }
    barrier_.arrive_and_wait();
  }

 private:
  std::mutex mutex_;
  std::vector<double> sums_;
  std::barrier<> barrier_;
};

struct Result {
  double loss = 0;
  std::vector<double> gradients;
  std::vector<float> buffers;
};

Result run(const SmallModel& model, const std::string& backend, const RandomBatch& all,
           const std::vector<int>& shares) {
  Result result;
  std::mutex mutex;
  Sum sum(static_cast<int>(shares.size()));
  std::vector<std::thread> threads;
  std::size_t begin = 0;
  for (const int share : shares) {
    threads.emplace_back([&, begin, count = static_cast<std::size_t>(share)] {
      Network network = make_network(model, backend);
      if (shares.size() > 1)
        network.set_sum_over_replicas([&](std::span<double> values) { sum(values); });
      const auto pixels = static_cast<std::size_t>(model.image.count());
      const Outcome outcome = network.forward(
          {std::span(all.images).subspan(begin * pixels, count * pixels),
           std::span(all.labels).subspan(begin, count), static_cast<double>(all.labels.size())},
          Mode::training);
      network.backward();
      const std::scoped_lock lock(mutex);
      result.loss += outcome.loss;
      const std::span<const float> gradients = network.parameters().gradients();
      result.gradients.resize(gradients.size());
      for (std::size_t i = 0; i < gradients.size(); ++i) result.gradients[i] += gradients[i];
      const std::span<const float> buffers = network.parameters().buffers();
      if (!result.buffers.empty()) CHECK(std::ranges::equal(buffers, result.buffers));
      result.buffers.assign(buffers.begin(), buffers.end());
    });
    begin += static_cast<std::size_t>(share);
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

double furthest(const auto& a, const auto& b) {
  double distance = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    distance = std::max(distance, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return distance;
}

}  // namespace

TEST_CASE("replicas that normalise together have the gradients of one network with all samples") {
  const auto backend = GENERATE(from_range(backend_names()));
  for (const SmallModel& model : small_models(16)) {
    const RandomBatch all(model.image, 9, kClasses, 7);
    const Result one = run(model, backend, all, {9});
    for (const std::vector<int>& shares : {std::vector{5, 4}, std::vector{2, 3, 4}}) {
      INFO(model.name << ", " << backend << ", " << shares.size() << " replicas");
      const Result several = run(model, backend, all, shares);
      CHECK(std::abs(several.loss - one.loss) < 1e-5);
      CHECK(furthest(several.gradients, one.gradients) < 2e-5);
      CHECK(furthest(several.buffers, one.buffers) < 1e-5);
    }
  }
}

}  // namespace kolo::tensor::test
