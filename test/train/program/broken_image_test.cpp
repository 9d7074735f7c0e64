// A broken image among others is reported once, with its name, by the rank that reads it.
#include <filesystem>
#include <fstream>
#include <string>

#include "test/support/catch.h"
#include "test/train/data/reference_images.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

void write_picture(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// A folder `pictures` with eight images of each class and split.
void fill(const fs::path& folder) {
  const kolo::train::Bytes bytes = kolo::train::reference_images().files.at("colour.png");
  for (const std::string split : {"train/", "val/"}) {
    for (const std::string name : {"cats/", "dogs/"}) {
      for (int i = 0; i < 8; ++i)
        write_picture(folder / "pictures" / (split + name + std::to_string(i) + ".png"),
                      std::string(bytes.begin(), bytes.end()));
    }
  }
}

int lines_with(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("a folder of images can be trained on, until one of them is broken") {
  const Folder folder;
  fill(folder.path);
  const Start start =
      folder.start({"train", "--dataset=imagefolder:pictures", "--model=small", "--image-size=32",
                    "--batch-size=4", "--ranks=2", "--epochs=1", "--save=saved"});
  const ProgramResult good = run_program(start);
  INFO(good.output);
  CHECK(good.exit_code == 0);
  const ProgramResult score =
      run_program(folder.start({"evaluate", "--load=saved", "--dataset=imagefolder:pictures"}));
  INFO(score.output);  // in the model's size, not that of the files
  CHECK(score.exit_code == 0);
  fs::remove_all(folder.path / "saved");
  write_picture(folder.path / "pictures/train/dogs/3.png", "\x89PNG\r\n\x1a\nnothing more");
  const ProgramResult broken = run_program(start);
  INFO(broken.output);
  CHECK(broken.exit_code == 2);
  CHECK(lines_with(broken.output, "'pictures/train/dogs/3.png' is damaged: it cannot be") == 1);
}
