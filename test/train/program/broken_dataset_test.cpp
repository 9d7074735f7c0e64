// Missing or broken files of a data set are rejected in one line that names them, before any rank
// starts, and leave no trace.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/train/data/mat_bytes.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

constexpr int kSamples = 40;
constexpr const char* kTrain = "train_32x32.mat";
constexpr const char* kTest = "test_32x32.mat";

std::string good_file() {
  return kolo::train::MatBytes()
      .add("X", kolo::train::kMatUint8, {32, 32, 3, kSamples},
           std::vector<std::uint8_t>(32 * 32 * 3 * kSamples, 7))
      .add("y", kolo::train::kMatUint8, {kSamples, 1}, std::vector<std::uint8_t>(kSamples, 3))
      .bytes();
}

void write(const fs::path& path, const std::string& bytes) {
  kolo::train::MatBytes::write(path, bytes);
}

// A folder with a valid data set.
struct DatasetFolder : Folder {
  DatasetFolder() {
    fs::create_directory(data());
    for (const char* name : {kTrain, kTest}) write(data() / name, good_file());
  }
  fs::path data() const { return path / "house numbers"; }
  Start compare() const {
    return start({"compare", "--model=small", "--dataset=svhn:house numbers", "--steps=2",
                  "--batch-size=8", "--strategies=ring"});
  }
};

void check_refused(const DatasetFolder& place, const Words& parts) {
  Program program(place.compare());
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 2);
  CHECK(std::count(program.output().begin(), program.output().end(), '\n') == 1);
  CHECK_THAT(program.output(), ContainsSubstring("kolo-train: "));
  for (const std::string& part : parts) CHECK_THAT(program.output(), ContainsSubstring(part));
  CHECK_FALSE(fs::exists(place.path / "report"));
  check_nothing_is_left(program, place);
}

}  // namespace

TEST_CASE("a data set in files can be trained on, and a report is written") {
  const DatasetFolder place;
  Program program(place.compare());
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 0);
  CHECK(fs::exists(place.path / "report/report.json"));
  check_nothing_is_left(program, place);
}

TEST_CASE("a data folder that is missing, empty or a file is rejected before anything starts") {
  const DatasetFolder place;
  fs::remove_all(place.data());
  check_refused(place, {"house numbers", "No such file or directory"});
  fs::create_directory(place.data());
  check_refused(place, {"house numbers", "there is neither train_32x32.mat"});
  fs::remove_all(place.data());
  write(place.data(), good_file());
  check_refused(place, {"house numbers", "is not a directory"});
}

TEST_CASE("a broken data file is rejected by name before anything starts") {
  const std::string name = GENERATE(kTrain, kTest);
  const DatasetFolder place;
  const fs::path file = place.data() / name;
  const std::string whole = good_file();

  write(file, whole.substr(0, whole.size() / 2));
  check_refused(place, {"house numbers/" + name, "truncated"});
  write(file, "");
  check_refused(place, {"house numbers/" + name, "is not a MATLAB 5 file"});
  write(file, "MATLAB 7.3 MAT-file" + whole.substr(19));
  check_refused(place, {"house numbers/" + name, "does not begin with 'MATLAB 5.0 MAT-file'"});
  fs::remove(file);
  check_refused(place, {"house numbers", "there is neither " + name});
  fs::create_directory(file);
  check_refused(place, {"house numbers/" + name, "directory"});
}
