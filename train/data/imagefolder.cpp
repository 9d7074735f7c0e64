#include "train/data/imagefolder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "train/count_text.h"
#include "train/data/data_file.h"
#include "train/data/image/image_file.h"
#include "train/data/image/resize.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;
constexpr int kChannels = 3;
constexpr std::array<std::string_view, 3> kExtensions{".jpg", ".jpeg", ".png"};

struct Picture {
  std::string file;
  int label = 0;
};

class ImageFolder final : public Dataset {
 public:
  ImageFolder(std::string description, std::vector<Picture> pictures, int classes, int side)
      : description_(std::move(description)),
        pictures_(std::move(pictures)),
        classes_(classes),
        side_(side) {}

  std::string description() const override { return description_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(pictures_.size()); }
  int classes() const override { return classes_; }
  ImageShape shape() const override { return {side_, side_, kChannels}; }
  // The constants of torchvision's models (0.485, 0.456, 0.406; 0.229, 0.224, 0.225) x 255.
  Normalization normalization() const override {
    return {{123.675f, 116.28f, 103.53f}, {58.395f, 57.12f, 57.375f}};
  }
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    check_sample_request(*this, index, pixels);
    const Picture& picture = pictures_[static_cast<std::size_t>(index)];
    std::ranges::copy(middle_square(read_image(picture.file), side_).pixels, pixels.begin());
    return picture.label;
  }

 private:
  std::string description_;
  std::vector<Picture> pictures_;
  int classes_;
  int side_;
};

[[noreturn]] void refuse_listing(const fs::path& folder, const std::error_code& error) {
  throw DataError(fmt::format("'{}' cannot be listed: {}", folder.string(), error.message()));
}

// The entries of an iterator over a folder that `is_wanted`, sorted.
template <typename Iterator>
std::vector<fs::path> entries_of(const fs::path& folder, bool (*is_wanted)(const fs::path&)) {
  std::error_code error;
  std::vector<fs::path> found;
  Iterator at(folder, fs::directory_options::follow_directory_symlink, error);
  for (; !error && at != Iterator(); at.increment(error)) {
    if (is_wanted(at->path())) found.push_back(at->path());
  }
  if (error) refuse_listing(folder, error);
  std::ranges::sort(found);
  return found;
}

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

bool is_class(const fs::path& path) {
  std::error_code ignored;
  return !is_hidden(path) && fs::is_directory(path, ignored);
}

bool is_picture(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return !is_hidden(path) && std::ranges::find(kExtensions, extension) != kExtensions.end();
}

// The folder of a split: the first of its names that exists.
fs::path folder_of(const fs::path& directory, Split split) {
  const std::vector<const char*> names =
      split == Split::train ? std::vector{"train"} : std::vector{"val", "test"};
  for (const char* name : names) {
    std::error_code error;
    if (fs::is_directory(directory / name, error)) return directory / name;
  }
  throw DataError(
      fmt::format("data set 'imagefolder:{0}': there is no folder {1} in '{0}'; expected "
                  "train/CLASS/IMAGE and val/CLASS/IMAGE (or test)",
                  directory.string(), fmt::join(names, " or ")));
}

std::vector<std::string> classes_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& path : entries_of<fs::directory_iterator>(folder, is_class))
    names.push_back(path.filename().string());
  if (!names.empty()) return names;
  throw DataError(
      fmt::format("'{}' has no folders, but one per class was expected", folder.string()));
}

void require_classes(const fs::path& folder, const std::vector<std::string>& names,
                     const fs::path& other, const std::vector<std::string>& others) {
  for (const std::string& name : names) {
    if (std::ranges::binary_search(others, name)) continue;
    throw DataError(
        fmt::format("'{}' has the class '{}', but '{}' does not; both splits must have "
                    "the same classes",
                    folder.string(), name, other.string()));
  }
}

// The files of each class.
std::vector<std::vector<fs::path>> files_in(const fs::path& folder,
                                            const std::vector<std::string>& classes) {
  std::vector<std::vector<fs::path>> files;
  for (const std::string& name : classes) {
    files.push_back(entries_of<fs::recursive_directory_iterator>(folder / name, is_picture));
    if (!files.back().empty()) continue;
    throw DataError(fmt::format(
        "'{}' has no images; expected files that end in {} or {}", (folder / name).string(),
        fmt::join(kExtensions.begin(), kExtensions.end() - 1, ", "), kExtensions.back()));
  }
  return files;
}

// All pictures in the order of classes. If only `wanted` (above 0) are, one of each class in turn.
std::vector<Picture> chosen_from(const std::vector<std::vector<fs::path>>& files,
                                 std::int64_t wanted, const fs::path& folder) {
  std::int64_t found = 0;
  for (const auto& of_class : files) found += static_cast<std::int64_t>(of_class.size());
  if (wanted > found) {
    throw DataError(fmt::format("'{}' has {}, but {} were requested", folder.string(),
                                count_text(found, "image"), wanted));
  }
  std::int64_t left = wanted > 0 ? wanted : found;
  std::vector<std::size_t> taken(files.size(), 0);
  while (left > 0) {
    for (std::size_t label = 0; label < files.size() && left > 0; ++label) {
      if (taken[label] == files[label].size()) continue;
      ++taken[label];
      --left;
    }
  }
  std::vector<Picture> pictures;
  for (std::size_t label = 0; label < files.size(); ++label) {
    for (std::size_t i = 0; i < taken[label]; ++i)
      pictures.push_back({files[label][i].string(), static_cast<int>(label)});
  }
  return pictures;
}

}  // namespace

std::unique_ptr<Dataset> open_imagefolder(std::string_view argument, Split split,
                                          const DatasetOptions& options) {
  const fs::path directory(argument);
  require_directory("imagefolder", directory);
  const fs::path train = folder_of(directory, Split::train);
  const fs::path test = folder_of(directory, Split::test);
  const std::vector<std::string> classes = classes_in(train);
  const std::vector<std::string> test_classes = classes_in(test);
  require_classes(train, classes, test, test_classes);
  require_classes(test, test_classes, train, classes);
  int side = options.image_size;
  if (side == 0) {
    const Image first = read_image(files_in(train, {classes.front()}).front().front());
    side = std::min({first.height, first.width, kMostDefaultImageSize});
  }
  const fs::path& folder = split == Split::train ? train : test;
  return std::make_unique<ImageFolder>(
      fmt::format("imagefolder ({})", folder.string()),
      chosen_from(files_in(folder, classes),
                  split == Split::train ? options.train_size : options.test_size, folder),
      static_cast<int>(classes.size()), side);
}

}  // namespace kolo::train
