// mnist on small generated files, valid and invalid, not compressed.
#include "train/data/mnist.h"

#include <array>
#include <string>

#include "test/support/catch.h"
#include "test/train/data/idx_bytes.h"
#include "test/train/data/mnist_refusal.h"

namespace kolo::train {
namespace {

using Grey = std::array<std::uint8_t, 28 * 28>;

TEST_CASE("mnist gives pixels by row and column, and labels") {
  const MnistFolder folder;
  const auto dataset = open_mnist(folder.text(), Split::train, {});
  REQUIRE(dataset->size() == 3);
  CHECK(dataset->classes() == 10);
  CHECK(dataset->shape() == ImageShape{28, 28, 1});
  const std::array<int, 3> labels = {5, 0, 9};
  for (int n = 0; n < 3; ++n) {
    Grey picture{};
    CHECK(dataset->get(n, picture) == labels[static_cast<std::size_t>(n)]);
    for (int at = 0; at < 28 * 28; ++at)
      REQUIRE(picture[static_cast<std::size_t>(at)] == (at / 28 + 3 * (at % 28) + 7 * n) % 256);
  }
}

TEST_CASE("mnist reads the first samples if fewer are requested") {
  const MnistFolder folder;
  const auto dataset = open_mnist(folder.text(), Split::train, {.train_size = 2});
  Grey picture{};
  CHECK(dataset->size() == 2);
  CHECK(dataset->get(1, picture) == 0);
  CHECK(mnist_refusal(folder, {.train_size = 4}) ==
        "'train-images-idx3-ubyte' has 3 samples, but 4 were requested");
}

TEST_CASE("mnist finds files that are spelled with a dot, and prefers the official names") {
  const MnistFolder folder(image_bytes(1), label_bytes({7}), "t10k-images.idx3-ubyte",
                           "t10k-labels.idx1-ubyte");
  CHECK(open_mnist(folder.text(), Split::test, {})->size() == 1);
  write_bytes(folder / "t10k-images-idx3-ubyte", image_bytes(2));
  write_bytes(folder / "t10k-labels-idx1-ubyte", label_bytes({1, 2}));
  CHECK(open_mnist(folder.text(), Split::test, {})->size() == 2);
  CHECK_THAT(mnist_refusal(folder),
             ContainsSubstring("there is neither train-images-idx3-ubyte nor "
                               "train-images-idx3-ubyte.gz in '" +
                               folder.text() + "'; kolo-train fetch mnist '"));
  write_bytes(folder / "train-images-idx3-ubyte", image_bytes(2));
  CHECK_THAT(mnist_refusal(folder),
             ContainsSubstring("there is neither train-labels-idx1-ubyte nor"));
}

TEST_CASE("mnist reports a missing directory, and a directory in the place of a file") {
  CHECK_THROWS_WITH(
      open_mnist("/nowhere/mnist", Split::train, {}),
      Catch::Matchers::StartsWith(
          "data set 'mnist:/nowhere/mnist': '/nowhere/mnist' cannot be listed: No such file"));
  const MnistFolder folder(image_bytes(1), label_bytes({7}), "unused", "train-labels-idx1-ubyte");
  std::filesystem::create_directory(folder / "train-images-idx3-ubyte");
  CHECK_THAT(mnist_refusal(folder),
             Catch::Matchers::StartsWith("'train-images-idx3-ubyte' cannot be read: "));
}

TEST_CASE("mnist reports what is wrong with the images") {
  const auto with_images = [](const std::string& bytes) {
    return mnist_refusal(MnistFolder(bytes, label_bytes({1, 2})));
  };
  const std::string good = image_bytes(2);
  CHECK(with_images(good) == "opened");
  CHECK(with_images(label_bytes(std::vector<std::uint8_t>(12))) ==
        "'train-images-idx3-ubyte' begins with the bytes 00 00 08 01, but 00 00 08 03 were "
        "expected (an IDX file of unsigned bytes, number of dimensions: 3)");
  std::string of_floats = good;
  of_floats[2] = 13;
  CHECK_THAT(with_images(of_floats), ContainsSubstring("begins with the bytes 00 00 0d 03, but"));
  CHECK(with_images(idx_bytes({1, 32, 24}, std::vector<std::uint8_t>(32 * 24))) ==
        "'train-images-idx3-ubyte' has the dimensions 1x32x24, but Nx28x28 were expected");
  CHECK(with_images(idx_bytes({0, 28, 28}, {})) ==
        "'train-images-idx3-ubyte' has the dimensions 0x28x28, but Nx28x28 were expected");
  CHECK(with_images("") == "'train-images-idx3-ubyte' is truncated: it ends inside its header");
  CHECK(with_images(good.substr(0, 15)) ==
        "'train-images-idx3-ubyte' is truncated: it ends inside its header");
  CHECK(with_images(good.substr(0, good.size() - 1)) ==
        "'train-images-idx3-ubyte' is truncated: it has 1583 bytes, but 1584 are expected for "
        "2x28x28");
  CHECK(with_images(good + "x") ==
        "'train-images-idx3-ubyte' is too long: it has 1585 bytes, but 1584 are expected for "
        "2x28x28");
  CHECK(with_images(idx_bytes({0xffffffff, 28, 28}, {})) ==
        "'train-images-idx3-ubyte' is truncated: it has 16 bytes, but 3367254359296 are expected "
        "for 4294967295x28x28");
}

TEST_CASE("mnist reports what is wrong with the labels") {
  const auto with_labels = [](const std::string& bytes) {
    return mnist_refusal(MnistFolder(image_bytes(2), bytes));
  };
  CHECK(with_labels(label_bytes({9, 0})) == "opened");
  CHECK(with_labels(label_bytes({9, 10})) ==
        "'train-labels-idx1-ubyte': the label of sample 1 is 10, but 0 to 9 were expected");
  CHECK(with_labels(label_bytes({9})) ==
        "'train-labels-idx1-ubyte' has 1 labels, but 'train-images-idx3-ubyte' has 2 images");
  CHECK(with_labels(label_bytes({})) ==
        "'train-labels-idx1-ubyte' has the dimensions 0, but N were expected");
  CHECK_THAT(with_labels(image_bytes(2)), ContainsSubstring("but 00 00 08 01 were expected"));
  const std::string good = label_bytes({9, 0});
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK_THAT(with_labels(good.substr(0, size)),
               Catch::Matchers::StartsWith("'train-labels-idx1-ubyte' is truncated: it "));
  }
}

}  // namespace
}  // namespace kolo::train
