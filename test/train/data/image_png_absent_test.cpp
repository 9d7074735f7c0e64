// The error of a build without libpng.
#include "test/support/catch.h"
#include "train/data/dataset.h"
#include "train/data/image/decoders.h"

TEST_CASE("without libpng, a PNG file says what to install") {
  CHECK_THROWS_WITH(
      kolo::train::decode_png({}, "picture"),
      ContainsSubstring("install libpng-dev, configure with cmake again and rebuild"));
}
