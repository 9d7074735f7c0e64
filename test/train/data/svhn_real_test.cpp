// svhn on the real data (see test/train/real_data.h).
#include <array>
#include <cmath>
#include <filesystem>

#include "test/support/catch.h"
#include "test/train/real_data.h"
#include "train/data/dataset.h"

namespace kolo::train {
namespace {

struct Statistics {
  std::array<int, 10> labels{};
  std::array<double, 3> mean{}, deviation{};
};

Statistics measure(const Dataset& dataset) {
  Statistics result;
  std::array<double, 3> squares{};
  std::array<std::uint8_t, 32 * 32 * 3> pixels{};
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    ++result.labels[static_cast<std::size_t>(dataset.get(i, pixels))];
    for (std::size_t at = 0; at < pixels.size(); ++at) {
      result.mean[at % 3] += pixels[at];
      squares[at % 3] += double{1} * pixels[at] * pixels[at];
    }
  }
  const double count = static_cast<double>(dataset.size()) * 32 * 32;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    result.mean[channel] /= count;
    result.deviation[channel] =
        std::sqrt(squares[channel] / count - result.mean[channel] * result.mean[channel]);
  }
  return result;
}

TEST_CASE("the real svhn subset has the labels, mean and deviation that its authors measured") {
  const std::filesystem::path folder = real_data("svhn");
  if (is_skipped_without(folder / "train_32x32.subset.mat")) return;
  const auto train = open_dataset("svhn:" + folder.string(), Split::train);
  REQUIRE(train->size() == 4434);
  const Statistics measured = measure(*train);
  CHECK(measured.labels == std::array<int, 10>{315, 871, 603, 507, 463, 428, 326, 321, 326, 274});
  const std::array<double, 3> mean = {113.45, 115.02, 122.19}, deviation = {51.31, 52.14, 51.06};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    CHECK(measured.mean[channel] == Approx(mean[channel]).margin(0.006));
    CHECK(measured.deviation[channel] == Approx(deviation[channel]).margin(0.006));
  }
  const auto test = open_dataset("svhn:" + folder.string(), Split::test);
  REQUIRE(test->size() == 1952);
  CHECK(measure(*test).labels ==
        std::array<int, 10>{136, 366, 297, 233, 194, 169, 149, 151, 134, 123});
}

}  // namespace
}  // namespace kolo::train
