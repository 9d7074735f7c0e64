// The error of a build without matio.
#include "test/support/catch.h"
#include "test/train/data/mat_bytes.h"
#include "train/data/dataset.h"

namespace kolo::train {
namespace {

TEST_CASE("without matio, svhn says what to install") {
  const TemporaryFolder folder;
  MatBytes()
      .add<std::uint8_t>("y", kMatUint8, {1, 1}, {1})
      .write(folder.path() / "train_32x32.mat");
  CHECK_THROWS_WITH(
      open_dataset("svhn:" + folder.path().string(), Split::train),
      ContainsSubstring("install libmatio-dev, configure with cmake again and rebuild"));
}

}  // namespace
}  // namespace kolo::train
