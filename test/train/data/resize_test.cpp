// Resizing of images against Pillow.
#include "train/data/image/resize.h"

#include <stdexcept>

#include "test/support/catch.h"
#include "test/train/data/reference_images.h"

namespace kolo::train {
namespace {

TEST_CASE("a middle square has the bytes of Pillow's resize and crop") {
  const ReferenceImages reference = reference_images();
  REQUIRE(reference.squares.size() == 6);
  for (const ReferenceImages::Square& square : reference.squares) {
    INFO(square.name << " to " << square.side);
    const Image result = middle_square(reference.images.at(square.name), square.side);
    CHECK(result.height == square.side);
    CHECK(result.width == square.side);
    CHECK(result.pixels == square.pixels);
  }
}

TEST_CASE("an image of the right size stays as it is") {
  const Image image{2, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  CHECK(middle_square(image, 2).pixels == image.pixels);
}

TEST_CASE("a long strip gives its middle, whatever its length") {
  Image strip{1, 1'000'001, Bytes(3'000'003)};
  strip.pixels[3 * 500'000] = 200;
  const Image square = middle_square(strip, 4096);
  CHECK(square.pixels[3 * (2048 + 4096 * 4095)] == 200);
  CHECK_THROWS_AS(middle_square(strip, 0), std::invalid_argument);
}

}  // namespace
}  // namespace kolo::train
