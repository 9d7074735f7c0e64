// svhn on small generated files, valid and invalid.
#include "train/data/svhn.h"

#include <array>
#include <string>

#include "test/support/catch.h"
#include "test/train/data/mat_bytes.h"

namespace kolo::train {
namespace {

constexpr std::size_t kSampleBytes = 32 * 32 * 3;
using Picture = std::array<std::uint8_t, kSampleBytes>;

// X[row, column, channel, sample] = row + 2 column + 50 channel + 3 sample, modulo 256.
std::vector<std::uint8_t> pixels(int samples) {
  std::vector<std::uint8_t> x;
  for (int n = 0; n < samples; ++n) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int column = 0; column < 32; ++column) {
        for (int row = 0; row < 32; ++row) {
          x.push_back(static_cast<std::uint8_t>(row + 2 * column + 50 * channel + 3 * n));
        }
      }
    }
  }
  return x;
}

MatBytes good_file() {
  return MatBytes()
      .add("X", kMatUint8, {32, 32, 3, 4}, pixels(4))
      .add<std::uint8_t>("y", kMatUint8, {4, 1}, {1, 10, 9, 5});
}

// The error of open_svhn for a folder with this one file; paths are removed.
std::string refusal(const MatBytes& file, const DatasetOptions& options = {}) {
  const TemporaryFolder folder;
  file.write(folder.path() / "train_32x32.mat");
  try {
    open_svhn(folder.path().string(), Split::train, options);
  } catch (const DataError& error) {
    std::string message = error.what();
    const std::size_t at = message.find(folder.path().string());
    REQUIRE(at != std::string::npos);
    return message.erase(at, folder.path().string().size() + 1);
  }
  return "opened";
}

TEST_CASE("svhn gives pixels by row, column, channel, and label 10 as the digit 0") {
  const TemporaryFolder folder;
  good_file().write(folder.path() / "train_32x32.mat");
  const auto dataset = open_svhn(folder.path().string(), Split::train, {});
  REQUIRE(dataset->size() == 4);
  CHECK(dataset->classes() == 10);
  CHECK(dataset->shape() == ImageShape{32, 32, 3});
  const std::array<int, 4> labels = {1, 0, 9, 5};
  for (int n = 0; n < 4; ++n) {
    Picture picture{};
    CHECK(dataset->get(n, picture) == labels[static_cast<std::size_t>(n)]);
    for (int at = 0; at < static_cast<int>(kSampleBytes); ++at) {
      const int row = at / 96, column = at / 3 % 32, channel = at % 3;
      REQUIRE(picture[static_cast<std::size_t>(at)] ==
              (row + 2 * column + 50 * channel + 3 * n) % 256);
    }
  }
}

TEST_CASE("svhn reads labels of type double, and the first samples if fewer are requested") {
  const TemporaryFolder folder;
  MatBytes()
      .add<double>("y", kMatDouble, {1, 2}, {10, 3})
      .add("X", kMatUint8, {32, 32, 3, 2}, pixels(2))
      .write(folder.path() / "test_32x32.mat");
  const auto both = open_svhn(folder.path().string(), Split::test, {});
  const auto one = open_svhn(folder.path().string(), Split::test, {.test_size = 1});
  Picture picture{};
  CHECK(both->size() == 2);
  CHECK(both->get(1, picture) == 3);
  CHECK(one->size() == 1);
  CHECK(one->get(0, picture) == 0);
}

TEST_CASE("svhn finds a subset under another name, unless there are two") {
  const TemporaryFolder folder;
  const std::string argument = folder.path().string();
  CHECK_THROWS_WITH(
      open_svhn(argument, Split::train, {}),
      ContainsSubstring("there is neither train_32x32.mat nor *train_32x32*.mat in '" + argument +
                        "'"));
  good_file().write(folder.path() / "train_32x32.subset.mat");
  CHECK(open_svhn(argument, Split::train, {})->size() == 4);
  CHECK_THROWS_WITH(open_svhn(argument, Split::test, {}),
                    ContainsSubstring("neither test_32x32.mat"));
  good_file().write(folder.path() / "my_train_32x32.mat");
  CHECK_THROWS_WITH(open_svhn(argument, Split::train, {}),
                    ContainsSubstring("my_train_32x32.mat, train_32x32.subset.mat; keep one"));
  good_file().write(folder.path() / "train_32x32.mat");
  CHECK(open_svhn(argument, Split::train, {})->size() == 4);
}

TEST_CASE("svhn reports a missing directory by name") {
  CHECK_THROWS_WITH(
      open_svhn("/nowhere/svhn", Split::train, {}),
      Catch::Matchers::StartsWith(
          "data set 'svhn:/nowhere/svhn': '/nowhere/svhn' cannot be listed: No such file"));
}

TEST_CASE("svhn reports what is wrong with a file") {
  const auto labels = [](std::vector<double> y) {
    return MatBytes()
        .add("X", kMatUint8, {32, 32, 3, 2}, pixels(2))
        .add("y", kMatDouble, {static_cast<std::int32_t>(y.size()), 1}, y);
  };
  CHECK(refusal(labels({1, 10})) == "opened");
  CHECK(refusal(labels({1, 0})) ==
        "'train_32x32.mat': the label of sample 1 is 0, but 1 to 10 were expected (10 means the "
        "digit 0)");
  CHECK_THAT(refusal(labels({11, 1})), ContainsSubstring("the label of sample 0 is 11"));
  CHECK_THAT(refusal(labels({1.5, 1})), ContainsSubstring("the label of sample 0 is 1.5"));
  CHECK(refusal(labels({1, 1, 1})) ==
        "variable 'y' of 'train_32x32.mat' is 3x1 double, but 2 labels of uint8 or double were "
        "expected, as X has 2 "
        "samples");
  CHECK(refusal(MatBytes().add("X", kMatUint8, {32, 32, 6, 1}, pixels(2))) ==
        "variable 'X' of 'train_32x32.mat' is 32x32x6x1 uint8, but 32x32x3xN uint8 was expected");
  CHECK_THAT(refusal(MatBytes().add<std::int16_t>("X", kMatInt16, {2, 2}, {1, 2, 3, 4})),
             ContainsSubstring("is 2x2 int16, but 32x32x3xN uint8 was expected"));
  CHECK_THAT(refusal(MatBytes().add("X", kMatUint8, {32, 32, 3, 2}, pixels(2))),
             ContainsSubstring("variable 'y' of 'train_32x32.mat' does not exist"));
  CHECK_THAT(refusal(MatBytes().add<double>("z", kMatDouble, {1, 1}, {1})),
             ContainsSubstring("variable 'X' of"));
  CHECK(refusal(good_file(), {.train_size = 5}) ==
        "'train_32x32.mat' has 4 samples, but 5 were requested");
}

TEST_CASE("svhn survives every truncation and every damaged byte of a file's structure") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "train_32x32.mat";
  const std::string whole = good_file().bytes();
  for (std::size_t size = 0; size < whole.size(); size += size < 256 ? 1 : 331) {
    MatBytes::write(path, whole.substr(0, size));
    CHECK_THROWS_AS(open_svhn(folder.path().string(), Split::train, {}), DataError);
  }
  const std::size_t labels_at = whole.size() - 64;
  for (std::size_t at = 0; at < whole.size(); at = at == 200 ? labels_at : at + 1) {
    for (const int flip : {0x01, 0x80}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      MatBytes::write(path, damaged);
      try {
        open_svhn(folder.path().string(), Split::train, {});  // may be harmless
      } catch (const DataError&) {
        SUCCEED();
      }
    }
  }
}

}  // namespace
}  // namespace kolo::train
