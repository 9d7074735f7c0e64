// mnist on the real data (see test/train/real_data.h).
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>

#include "test/support/catch.h"
#include "test/train/real_data.h"
#include "train/data/dataset.h"

namespace kolo::train {
namespace {

std::array<int, 10> label_counts(const Dataset& dataset) {
  std::array<int, 10> counts{};
  std::array<std::uint8_t, 28 * 28> pixels{};
  for (std::int64_t i = 0; i < dataset.size(); ++i)
    ++counts[static_cast<std::size_t>(dataset.get(i, pixels))];
  return counts;
}

TEST_CASE("the real mnist has the known labels, mean and deviation") {
  const std::filesystem::path folder = real_data("mnist");
  if (is_skipped_without(folder / "train-images-idx3-ubyte.gz")) return;
  const auto train = open_dataset("mnist:" + folder.string(), Split::train);
  REQUIRE(train->size() == 60'000);
  CHECK(label_counts(*train) ==
        std::array<int, 10>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
  std::array<std::uint8_t, 28 * 28> pixels{};
  std::int64_t sum = 0, squares = 0;
  for (std::int64_t i = 0; i < train->size(); ++i) {
    train->get(i, pixels);
    for (const std::int64_t pixel : pixels) sum += pixel, squares += pixel * pixel;
  }
  const double count = 60'000.0 * 28 * 28;
  const double mean = static_cast<double>(sum) / count;
  const double deviation = std::sqrt(static_cast<double>(squares) / count - mean * mean);
  CHECK(mean / 255 == Approx(0.1307).margin(0.00005));
  CHECK(deviation / 255 == Approx(0.3081).margin(0.00005));
  CHECK(train->normalization().mean[0] == Approx(mean).margin(0.02));
  CHECK(train->normalization().deviation[0] == Approx(deviation).margin(0.02));
  const auto test = open_dataset("mnist:" + folder.string(), Split::test);
  CHECK(label_counts(*test) ==
        std::array<int, 10>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
}

}  // namespace
}  // namespace kolo::train
