// The error of a build without zlib.
#include "test/support/catch.h"
#include "test/train/data/idx_bytes.h"
#include "test/train/data/mnist_refusal.h"

namespace kolo::train {
namespace {

TEST_CASE("without zlib, mnist says what to install for compressed files, and reads plain ones") {
  CHECK(mnist_refusal(MnistFolder()) == "opened");
  CHECK(mnist_refusal(MnistFolder("\x1f\x8b and so on")) ==
        "'train-images-idx3-ubyte' cannot be read: it is compressed, and this build has no zlib; "
        "decompress it with gunzip, or install zlib1g-dev, configure with cmake again and rebuild");
}

}  // namespace
}  // namespace kolo::train
