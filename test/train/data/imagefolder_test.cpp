// imagefolder on small generated folders, valid and invalid, and on real ones (real_data.h).
#include "train/data/imagefolder.h"

#include <array>
#include <filesystem>
#include <string>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "test/train/data/reference_images.h"
#include "test/train/real_data.h"
#include "train/data/image/resize.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

// A folder of images; each file is one of image_reference.txt.
class Folder {
 public:
  void add(const std::string& path, const std::string& name) {
    const Bytes& bytes = reference_.files.at(name);
    write(path, std::string(bytes.begin(), bytes.end()));
  }
  void write(const std::string& path, const std::string& bytes) {
    fs::create_directories((*this / path).parent_path());
    std::ofstream(*this / path, std::ios::binary) << bytes;
  }
  std::unique_ptr<Dataset> open(Split split = Split::train,
                                const DatasetOptions& options = {}) const {
    return open_imagefolder(folder_.path().string(), split, options);
  }
  std::string refusal(const DatasetOptions& options = {}) const {
    try {
      open(Split::train, options);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }
  fs::path operator/(const std::string& path) const { return folder_.path() / path; }
  const Image& image(const std::string& name) const { return reference_.images.at(name); }

 private:
  test::TemporaryFolder folder_;
  ReferenceImages reference_ = reference_images();
};

void fill(Folder& folder) {
  folder.add("train/cat/2.png", "colour.png");
  folder.add("train/cat/10.PNG", "grey.png");
  folder.add("train/Bird/deeper/x.Png", "alpha.png");
  folder.add("train/cat/.hidden.png", "grey.png");
  folder.write("train/cat/notes.txt", "no image");
  folder.write("train/README", "no class");
  folder.add("val/cat/a.png", "grey.png");
  folder.add("val/Bird/a.png", "grey.png");
}

TEST_CASE("imagefolder sorts classes and files, and finds files by their ending") {
  Folder folder;
  fill(folder);
  const auto dataset = folder.open();
  REQUIRE(dataset->size() == 3);
  CHECK(dataset->classes() == 2);
  CHECK(dataset->shape() == ImageShape{13, 13, 3});  // the short side of alpha.png
  const std::array<std::pair<int, const char*>, 3> expected{
      {{0, "alpha.png"}, {1, "grey.png"}, {1, "colour.png"}}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Bytes pixels(13 * 13 * 3);
    CHECK(dataset->get(static_cast<std::int64_t>(i), pixels) == expected[i].first);
    CHECK(pixels == middle_square(folder.image(expected[i].second), 13).pixels);
  }
  CHECK(folder.open(Split::test)->size() == 2);
}

TEST_CASE("imagefolder gives all images the size that is asked for") {
  Folder folder;
  fill(folder);
  const auto dataset = folder.open(Split::test, {.image_size = 20});
  CHECK(dataset->shape() == ImageShape{20, 20, 3});
  Bytes pixels(20 * 20 * 3);
  CHECK(dataset->get(0, pixels) == 0);
  CHECK(pixels == middle_square(folder.image("grey.png"), 20).pixels);
}

TEST_CASE("imagefolder takes a limited number of images from all classes in turn") {
  Folder folder;
  fill(folder);
  folder.add("train/cat/3.png", "colour.png");
  const auto dataset = folder.open(Split::train, {.train_size = 3});
  REQUIRE(dataset->size() == 3);
  Bytes pixels(13 * 13 * 3);
  CHECK(dataset->get(0, pixels) == 0);
  CHECK(dataset->get(1, pixels) == 1);
  CHECK_THAT(folder.refusal({.train_size = 5}), ContainsSubstring("has 4 images, but 5 were"));
}

TEST_CASE("imagefolder reports missing folders, empty classes and other classes") {
  Folder folder;
  folder.write("x", "");
  CHECK_THAT(folder.refusal(), ContainsSubstring("there is no folder train in '"));
  folder.add("train/cat/a.png", "grey.png");
  CHECK_THAT(folder.refusal(), ContainsSubstring("there is no folder val or test in '"));
  fs::create_directories(folder / "test");
  CHECK_THAT(folder.refusal(), ContainsSubstring("test' has no folders, but one per class was"));
  folder.add("test/dog/a.png", "grey.png");
  CHECK_THAT(folder.refusal(), ContainsSubstring("train' has the class 'cat', but '"));
  folder.add("test/cat/a.png", "grey.png");
  CHECK_THAT(folder.refusal(), ContainsSubstring("test' has the class 'dog', but '"));
  folder.write("train/dog/a.txt", "no image");
  CHECK_THAT(folder.refusal(),
             ContainsSubstring("train/dog' has no images; expected files that end in .jpg, .jpeg "
                               "or .png"));
}

TEST_CASE("imagefolder names a file that cannot be decoded when it is asked for") {
  Folder folder;
  fill(folder);
  folder.write("train/cat/2.png", "\x89PNG\r\n\x1a\nnothing more");
  const auto dataset = folder.open();
  Bytes pixels(13 * 13 * 3);
  CHECK(dataset->get(1, pixels) == 1);
  CHECK_THROWS_WITH(dataset->get(2, pixels),
                    ContainsSubstring("train/cat/2.png' is damaged: it cannot be decoded as PNG"));
}

TEST_CASE("the real tiny-imagenet-10 has its classes, counts and grey images") {
  const fs::path folder = real_data("tiny-imagenet-10");
  if (is_skipped_without(folder / "train")) return;
  int grey = 0;
  for (const auto& [split, of_each] : {std::pair{Split::train, 250}, {Split::test, 50}}) {
    const auto dataset = open_imagefolder(folder.string(), split, {});
    REQUIRE(dataset->size() == 10 * of_each);
    REQUIRE(dataset->shape() == ImageShape{64, 64, 3});
    std::array<int, 10> labels{};
    Bytes pixels(64 * 64 * 3);
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      ++labels.at(static_cast<std::size_t>(dataset->get(i, pixels)));
      bool is_grey = true;
      for (std::size_t at = 0; at < pixels.size(); at += 3)
        is_grey = is_grey && pixels[at] == pixels[at + 1] && pixels[at] == pixels[at + 2];
      grey += is_grey ? 1 : 0;
    }
    for (const int count : labels) CHECK(count == of_each);
  }
  CHECK(grey == 26);  // 25 files of grey, and one of colour without any
}

}  // namespace
}  // namespace kolo::train
