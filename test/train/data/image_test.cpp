// Decoding of JPEG and PNG against Pillow, and of damaged files.
#include "train/data/image/image_file.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "test/support/catch.h"
#include "test/train/data/reference_images.h"
#include "train/data/dataset.h"

namespace kolo::train {
namespace {

std::string image_refusal(const Bytes& bytes) {
  try {
    decode_image(bytes, "some/picture");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// The big-endian number of 2 or 4 bytes is written at `at`.
void put(Bytes& bytes, std::size_t at, std::uint32_t number, int count) {
  for (int i = 0; i < count; ++i)
    bytes.at(at + static_cast<std::size_t>(i)) =
        static_cast<std::uint8_t>(number >> (8 * (count - 1 - i)));
}

TEST_CASE("decoded images have the pixels that Pillow decodes") {
  const ReferenceImages reference = reference_images();
  REQUIRE(reference.files.size() == 14);
  for (const auto& [name, bytes] : reference.files) {
    INFO(name);
    const Image image = decode_image(bytes, name);
    const Image& expected = reference.images.at(name);
    REQUIRE(image.height == expected.height);
    REQUIRE(image.width == expected.width);
    REQUIRE(image.pixels.size() == expected.pixels.size());
    int difference = 0;
    for (std::size_t at = 0; at < image.pixels.size(); ++at)
      difference = std::max(difference, std::abs(image.pixels[at] - expected.pixels[at]));
    CHECK(difference <= (name.ends_with(".jpg") ? 1 : 0));
  }
}

TEST_CASE("an image file that ends too early is refused by name") {
  for (const auto& [name, bytes] : reference_images().files) {
    INFO(name);
    // The last two bytes of a JPEG are its end marker; without it, it is whole all the same.
    for (std::size_t length = 8; length + 12 < bytes.size(); length += 7) {
      INFO(length);
      CHECK_THAT(image_refusal(Bytes(bytes.begin(), bytes.begin() + static_cast<long>(length))),
                 ContainsSubstring("'some/picture' is damaged: it cannot be decoded as "));
    }
  }
}

TEST_CASE("flipped bytes in an image file are refused or decoded, and nothing else") {
  for (const auto& [name, bytes] : reference_images().files) {
    INFO(name);
    for (std::size_t at = 8; at < bytes.size(); at += 3) {
      Bytes damaged = bytes;
      damaged[at] ^= 0xff;
      const std::string text = image_refusal(damaged);
      CHECK((text.empty() || text.starts_with("'some/picture' ")));
    }
  }
}

TEST_CASE("an image of more than 100 megapixels is refused before memory is allocated") {
  Bytes jpeg = reference_images().files.at("colour.jpg");
  const Bytes frame = {0xff, 0xc0, 0, 17, 8};
  const auto found = std::ranges::search(jpeg, frame);
  put(jpeg, static_cast<std::size_t>(found.begin() - jpeg.begin()) + 5, 10'000, 2);
  put(jpeg, static_cast<std::size_t>(found.begin() - jpeg.begin()) + 7, 10'001, 2);
  CHECK(image_refusal(jpeg) ==
        "'some/picture' has 10001 x 10000 pixels, but 1 to 100000000 pixels were expected");
}

TEST_CASE("an image whose pixels cannot be in so short a file is refused") {
  Bytes png = reference_images().files.at("colour.png");
  put(png, 16, 9000, 4);
  put(png, 20, 9000, 4);
  put(png, 29, 0xe2b7e5ed, 4);  // the checksum of the header
  CHECK_THAT(image_refusal(png), ContainsSubstring("9000 x 9000 pixels are more than a file of"));
}

TEST_CASE("a file of another format is refused with its first bytes") {
  CHECK(image_refusal({}) == "'some/picture' is empty");
  CHECK(image_refusal({'G', 'I', 'F', '8', '9', 'a'}) ==
        "'some/picture' is neither JPEG nor PNG; it begins with the bytes 47 49 46 38");
}

}  // namespace
}  // namespace kolo::train
