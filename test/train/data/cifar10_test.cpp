// cifar10 on small generated files, valid and invalid, and on the real ones (real_data.h).
#include "train/data/cifar10.h"

#include <array>
#include <filesystem>
#include <string>

#include "test/support/catch.h"
#include "test/train/data/idx_bytes.h"
#include "test/train/real_data.h"

namespace kolo::train {
namespace {

constexpr std::size_t kPlane = 32 * 32;
using Colour = std::array<std::uint8_t, 3 * kPlane>;

// Pixel `at` of channel c of the picture of `label` is (at + 50 c + label) mod 256.
std::string record_bytes(int label) {
  std::string bytes(1, static_cast<char>(label));
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t at = 0; at < kPlane; ++at)
      bytes += static_cast<char>((at + 50 * c + static_cast<std::size_t>(label)) % 256);
  }
  return bytes;
}

std::string cifar10_refusal(const std::filesystem::path& folder,
                            const DatasetOptions& options = {}) {
  try {
    open_cifar10(folder.string(), Split::train, options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("cifar10 reads the batches that exist, in their order, with interleaved channels") {
  const test::TemporaryFolder folder;
  write_bytes(folder / "data_batch_2.bin", record_bytes(7) + record_bytes(0));
  write_bytes(folder / "data_batch_5.bin", record_bytes(9));
  write_bytes(folder / "test_batch.bin", record_bytes(4));
  const auto dataset = open_cifar10(folder.path().string(), Split::train, {});
  REQUIRE(dataset->size() == 3);
  CHECK(dataset->classes() == 10);
  CHECK(dataset->shape() == ImageShape{32, 32, 3});
  CHECK_THAT(dataset->description(), Catch::Matchers::EndsWith(", 2 of 5 files)"));
  const std::array<int, 3> labels{7, 0, 9};
  for (std::size_t n = 0; n < labels.size(); ++n) {
    Colour picture{};
    CHECK(dataset->get(static_cast<std::int64_t>(n), picture) == labels[n]);
    for (std::size_t at = 0; at < kPlane; ++at) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t expected = (at + 50 * c + static_cast<std::size_t>(labels[n])) % 256;
        REQUIRE(picture[3 * at + c] == expected);
      }
    }
  }
  CHECK(open_cifar10(folder.path().string(), Split::train, {.train_size = 2})->size() == 2);
  CHECK(open_cifar10(folder.path().string(), Split::test, {})->size() == 1);
}

TEST_CASE("cifar10 finds the files in the folder that the official archive makes") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cifar-10-batches-bin");
  write_bytes(folder.path() / "cifar-10-batches-bin" / "data_batch_1.bin", record_bytes(1));
  CHECK(open_cifar10(folder.path().string(), Split::train, {})->size() == 1);
}

TEST_CASE("cifar10 reports missing, short and wrong files") {
  const test::TemporaryFolder folder;
  CHECK_THAT(cifar10_refusal(folder.path()),
             ContainsSubstring("there is no data_batch_1.bin in '"));
  write_bytes(folder / "data_batch_1.bin", record_bytes(3).substr(1));
  CHECK_THAT(cifar10_refusal(folder.path()),
             ContainsSubstring("has 3072 bytes, but a multiple of 3073 was expected"));
  write_bytes(folder / "data_batch_1.bin", "");
  CHECK_THAT(cifar10_refusal(folder.path()), ContainsSubstring("has 0 bytes"));
  write_bytes(folder / "data_batch_1.bin", record_bytes(3) + record_bytes(10));
  CHECK_THAT(cifar10_refusal(folder.path()),
             ContainsSubstring("the label of sample 1 is 10, but 0 to 9 were expected"));
  write_bytes(folder / "data_batch_1.bin", record_bytes(3));
  CHECK_THAT(cifar10_refusal(folder.path(), {.train_size = 2}),
             ContainsSubstring("has 1 sample in 1 file, but 2 were requested"));
}

TEST_CASE("the real cifar10 has the labels that its authors counted") {
  const std::filesystem::path folder = real_data("cifar10");
  if (is_skipped_without(folder / "data_batch_1.bin")) return;
  const auto count = [](const Dataset& dataset) {
    std::array<int, 10> labels{};
    Colour picture{};
    for (std::int64_t i = 0; i < dataset.size(); ++i)
      ++labels[static_cast<std::size_t>(dataset.get(i, picture))];
    return labels;
  };
  const auto train = open_cifar10(folder.string(), Split::train, {.train_size = 10'000});
  CHECK(count(*train) ==
        std::array<int, 10>{1003, 965, 1008, 1008, 1003, 990, 1017, 999, 1012, 995});
  const auto test = open_cifar10(folder.string(), Split::test, {});
  CHECK(count(*test) ==
        std::array<int, 10>{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
}

}  // namespace
}  // namespace kolo::train
