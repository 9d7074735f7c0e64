// The error of a build without libjpeg.
#include "test/support/catch.h"
#include "train/data/dataset.h"
#include "train/data/image/decoders.h"

TEST_CASE("without libjpeg, a JPEG file says what to install") {
  CHECK_THROWS_WITH(
      kolo::train::decode_jpeg({}, "picture"),
      ContainsSubstring("install libjpeg-dev, configure with cmake again and rebuild"));
}
