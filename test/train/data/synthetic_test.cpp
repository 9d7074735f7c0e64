// synthetic: shapes, labels, and samples that are fixed and differ from each other.
#include "train/data/synthetic.h"

#include <set>
#include <string>
#include <vector>

#include "test/support/catch.h"

namespace kolo::train {
namespace {

std::vector<std::uint8_t> pixels_of(const Dataset& dataset, std::int64_t index) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(dataset.shape().elements()));
  CHECK(dataset.get(index, pixels) == index % dataset.classes());
  return pixels;
}

TEST_CASE("synthetic samples are fixed by the seed, and differ") {
  const auto dataset = open_synthetic("5x7x1:3", Split::train, {.seed = 3, .train_size = 200'000});
  const auto again = open_synthetic("5x7x1:3", Split::train, {.seed = 3});
  const auto other = open_synthetic("5x7x1:3", Split::train, {.seed = 4});
  CHECK(dataset->shape() == ImageShape{5, 7, 1});
  CHECK(dataset->size() == 200'000);
  CHECK(dataset->classes() == 3);
  std::set<std::vector<std::uint8_t>> seen;
  for (std::int64_t index = 0; index < 100; ++index) seen.insert(pixels_of(*dataset, index));
  CHECK(seen.size() == 100);
  CHECK(pixels_of(*dataset, 7) == pixels_of(*again, 7));
  CHECK(pixels_of(*dataset, 7) != pixels_of(*other, 7));
  pixels_of(*dataset, 199'999);
}

TEST_CASE("synthetic has a usual form by default") {
  const auto dataset = open_synthetic("", Split::test, {});
  CHECK(dataset->shape() == ImageShape{32, 32, 3});
  CHECK(dataset->classes() == 10);
  CHECK(dataset->size() == kSyntheticTestSize);
  CHECK(open_synthetic("224x160x3", Split::train, {})->shape() == ImageShape{224, 160, 3});
}

TEST_CASE("synthetic refuses other forms") {
  for (const std::string text : {"32", "32x32", "32x32x4", "0x32x3", "32x32x3:", "32x32x3:0", "x",
                                 "32x32x3x3", "32x32x3:10:1", "-1x32x3", "4097x1x1", "32x32x",
                                 "32x32x3:10x", "99999999999x1x1", "32 x32x3"}) {
    INFO(text);
    CHECK_THROWS_WITH(
        open_synthetic(text, Split::train, {}),
        ContainsSubstring("data set 'synthetic:" + text + "': expected HEIGHTxWIDTH"));
  }
}

}  // namespace
}  // namespace kolo::train
