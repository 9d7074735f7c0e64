#include "train/data/cifar10.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "train/count_text.h"
#include "train/data/data_file.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kSide = 32;
constexpr std::int64_t kPlane = kSide * kSide;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kSampleBytes = kPlane * kChannels;
constexpr std::int64_t kRecordBytes = 1 + kSampleBytes;
constexpr int kClasses = 10;
constexpr int kBatches = 5;

// Records as in the files: a label, then the planes red, green and blue, row by row.
class Cifar10 final : public Dataset {
 public:
  Cifar10(std::string description, std::vector<std::uint8_t> records)
      : description_(std::move(description)), records_(std::move(records)) {}

  std::string description() const override { return description_; }
  std::int64_t size() const override {
    return static_cast<std::int64_t>(records_.size()) / kRecordBytes;
  }
  int classes() const override { return kClasses; }
  ImageShape shape() const override { return {kSide, kSide, kChannels}; }
  // The usual constants (0.4914, 0.4822, 0.4465; 0.2470, 0.2435, 0.2616 of the 50,000 training
  // samples) x 255.
  Normalization normalization() const override {
    return {{125.31f, 122.95f, 113.87f}, {62.99f, 62.09f, 66.70f}};
  }
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    check_sample_request(*this, index, pixels);
    const std::uint8_t* record = records_.data() + index * kRecordBytes;
    const std::uint8_t* plane = record + 1;
    for (std::size_t channel = 0; channel < kChannels; ++channel, plane += kPlane) {
      for (std::size_t at = 0; at < kPlane; ++at) pixels[at * kChannels + channel] = plane[at];
    }
    return record[0];
  }

 private:
  std::string description_;
  std::vector<std::uint8_t> records_;
};

// The files of a split that exist. Throws DataError if there is none.
std::vector<fs::path> find_files(const fs::path& given, Split split) {
  require_directory("cifar10", given);
  std::error_code error;
  const fs::path unpacked = given / "cifar-10-batches-bin";
  const fs::path directory = fs::is_directory(unpacked, error) ? unpacked : given;
  std::vector<fs::path> files;
  if (split == Split::test) {
    files.push_back(directory / "test_batch.bin");
  } else {
    for (int batch = 1; batch <= kBatches; ++batch)
      files.push_back(directory / fmt::format("data_batch_{}.bin", batch));
  }
  const std::string first = files.front().filename().string();
  std::erase_if(files, [&](const fs::path& file) { return !fs::exists(file, error); });
  if (!files.empty()) return files;
  throw DataError(
      fmt::format("data set 'cifar10:{0}': there is no {1} in '{2}'; kolo-train fetch cifar10 "
                  "'{0}' downloads it",
                  given.string(), first, directory.string()));
}

// Appends the records of `path`, at most `most` of them; below 0: all.
void read_records(const fs::path& path, std::int64_t most, std::vector<std::uint8_t>& records) {
  DataFile file = open_data_file(path);
  if (file.bytes == 0 || file.bytes % kRecordBytes != 0) {
    throw DataError(
        fmt::format("'{}' has {} bytes, but a multiple of {} was expected (a label and 32 x 32 x 3 "
                    "pixels); is it complete, and of the binary version?",
                    file.name, file.bytes, kRecordBytes));
  }
  const std::int64_t available = file.bytes / kRecordBytes;
  const std::int64_t taken = most < 0 ? available : std::min(available, most);
  const std::size_t before = records.size();
  records.resize(before + static_cast<std::size_t>(taken * kRecordBytes));
  file.stream.read(reinterpret_cast<char*>(records.data() + before), taken * kRecordBytes);
  if (!file.stream) throw DataError(fmt::format("'{}' cannot be read completely", file.name));
  for (std::int64_t sample = 0; sample < taken; ++sample) {
    const int label = records[before + static_cast<std::size_t>(sample * kRecordBytes)];
    if (label < kClasses) continue;
    throw DataError(fmt::format("'{}': the label of sample {} is {}, but 0 to 9 were expected",
                                file.name, sample, label));
  }
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(std::string_view argument, Split split,
                                      const DatasetOptions& options) {
  const std::vector<fs::path> files = find_files(fs::path(argument), split);
  const std::int64_t wanted = split == Split::train ? options.train_size : options.test_size;
  std::vector<std::uint8_t> records;
  for (const fs::path& file : files) {
    const std::int64_t so_far = static_cast<std::int64_t>(records.size()) / kRecordBytes;
    if (wanted > 0 && so_far == wanted) break;
    read_records(file, wanted > 0 ? wanted - so_far : -1, records);
  }
  const std::int64_t found = static_cast<std::int64_t>(records.size()) / kRecordBytes;
  if (found < wanted) {
    throw DataError(fmt::format("'{}' has {} in {}, but {} were requested",
                                files.front().parent_path().string(), count_text(found, "sample"),
                                count_text(static_cast<std::int64_t>(files.size()), "file"),
                                wanted));
  }
  const std::string which = split == Split::test || files.size() == kBatches
                                ? ""
                                : fmt::format(", {} of {} files", files.size(), kBatches);
  return std::make_unique<Cifar10>(
      fmt::format("cifar10 ({}{})", files.front().parent_path().string(), which),
      std::move(records));
}

}  // namespace kolo::train
