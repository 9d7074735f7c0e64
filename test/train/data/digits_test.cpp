// The rendered digits: reproducible bytes, balanced labels, correct statistics.
#include <array>
#include <cmath>
#include <set>
#include <string>

#include "test/support/catch.h"
#include "train/data/dataset.h"
#include "train/data/glyphs.h"

namespace kolo::train {
namespace {

using Picture = std::array<std::uint8_t, 32 * 32 * 3>;

Picture picture(const Dataset& dataset, std::int64_t index) {
  Picture pixels{};
  dataset.get(index, pixels);
  return pixels;
}

// FNV-1a, 64 bits.
std::uint64_t hash_of(const Dataset& dataset, std::int64_t samples) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::int64_t i = 0; i < samples; ++i) {
    for (const std::uint8_t byte : picture(dataset, i)) hash = (hash ^ byte) * 0x100000001b3u;
  }
  return hash;
}

TEST_CASE("digits are the same bytes with every compiler and on every platform") {
  const auto train = open_dataset("digits", Split::train, {});
  const auto test = open_dataset("digits", Split::test, {});
  CHECK(hash_of(*train, 200) == 0xd4d0113d5d8fb5f1u);
  CHECK(hash_of(*test, 200) == 0xf29a784f614727afu);
}

TEST_CASE("a digit depends only on seed, split and index") {
  const auto small = open_dataset("digits", Split::train, {.seed = 3, .train_size = 50});
  const auto large = open_dataset("digits", Split::train, {.seed = 3, .train_size = 100'000});
  const auto other_seed = open_dataset("digits", Split::train, {.seed = 4});
  const auto other_split = open_dataset("digits", Split::test, {.seed = 3});
  CHECK(small->size() == 50);
  CHECK(large->size() == 100'000);
  for (const std::int64_t index : {49, 0, 17, 49}) {
    CHECK(picture(*small, index) == picture(*large, index));
    CHECK(picture(*small, index) != picture(*other_seed, index));
    CHECK(picture(*small, index) != picture(*other_split, index));
  }
}

TEST_CASE("digits have balanced labels and no two equal pictures") {
  const auto test = open_dataset("digits", Split::test, {});
  CHECK(test->size() == 2000);
  CHECK(test->classes() == 10);
  std::array<int, 10> counts{};
  std::set<Picture> seen;
  for (std::int64_t i = 0; i < test->size(); ++i) {
    Picture pixels{};
    ++counts[static_cast<std::size_t>(test->get(i, pixels))];
    seen.insert(pixels);
  }
  for (const int count : counts) CHECK(count == 200);
  CHECK(seen.size() == 2000);
}

TEST_CASE("the mean and deviation of digits match its pixels") {
  const auto train = open_dataset("digits", Split::train, {.train_size = 2000});
  std::array<double, 3> sums{}, squares{};
  for (std::int64_t i = 0; i < train->size(); ++i) {
    const Picture pixels = picture(*train, i);
    for (std::size_t at = 0; at < pixels.size(); ++at) {
      sums[at % 3] += pixels[at];
      squares[at % 3] += double{1} * pixels[at] * pixels[at];
    }
  }
  const double count = 2000.0 * 32 * 32;
  const Normalization stated = train->normalization();
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const double mean = sums[channel] / count;
    CHECK(stated.mean[channel] == Approx(mean).margin(2));
    CHECK(stated.deviation[channel] ==
          Approx(std::sqrt(squares[channel] / count - mean * mean)).margin(1));
  }
}

TEST_CASE("every glyph of every design stays inside its cell") {
  for (int design = 0; design < glyph_designs(); ++design) {
    for (int digit = 0; digit < 10; ++digit) {
      CAPTURE(design, digit);
      CHECK(glyph(design, digit).size() >= 2);
      for (const Segment& segment : glyph(design, digit)) {
        for (const Point point : {segment.from, segment.to}) {
          CHECK(
              (point.x >= 0 && point.x <= kGlyphWidth && point.y >= 0 && point.y <= kGlyphHeight));
        }
      }
    }
  }
  CHECK_THROWS_AS(glyph(0, 10), std::invalid_argument);
  CHECK_THROWS_AS(glyph(-1, 0), std::invalid_argument);
}

TEST_CASE("invalid requests to a data set are rejected") {
  const auto test = open_dataset("digits", Split::test, {.test_size = 5});
  Picture pixels{};
  CHECK_THROWS_WITH(test->get(5, pixels),
                    ContainsSubstring("sample 5 was requested, but there are 5"));
  CHECK_THROWS_AS(test->get(-1, pixels), std::invalid_argument);
  CHECK_THROWS_AS(test->get(0, std::span(pixels).first(7)), std::invalid_argument);
}

}  // namespace
}  // namespace kolo::train
