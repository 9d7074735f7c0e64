// Tests that the examples behave as their head comments say, and that train/README.md shows them.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"
#include "test/train/real_data.h"

namespace kolo::train {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

// The accuracies that rank 0 prints, in percent, one for each epoch.
std::vector<double> accuracies(const std::string& output) {
  const std::string label = ": test accuracy ";
  std::vector<double> found;
  for (auto at = output.find(label); at != std::string::npos; at = output.find(label, at + 1))
    found.push_back(std::stod(output.substr(at + label.size())));
  return found;
}

}  // namespace

TEST_CASE("the example trains on digits, also with ranks that have no sample of the last batch") {
  // The last batch of 193 samples has 1.
  const auto outcomes = test::run_processes(3, {KOLO_MNIST, "digits", "2", "193"});
  for (const auto& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
  }
  INFO(outcomes[0].output);
  CHECK(outcomes[0].output.starts_with("epoch 1: test accuracy "));
  CHECK(accuracies(outcomes[0].output).size() == 2);
  CHECK(outcomes[1].output.empty());
}

TEST_CASE("the example learns handwritten digits on two ranks") {
  const std::filesystem::path folder = real_data("mnist");
  if (is_skipped_without(folder / "train-images-idx3-ubyte.gz")) return;
  const auto outcomes =
      test::run_processes(2, {KOLO_MNIST, "mnist:" + folder.string(), "1", "2560"});
  INFO(outcomes[0].output << outcomes[1].output);
  REQUIRE(outcomes[0].exit_code == 0);
  REQUIRE(accuracies(outcomes[0].output).size() == 1);
  CHECK(accuracies(outcomes[0].output)[0] > 60);
}

TEST_CASE("the example reports missing data in one line") {
  const auto outcomes =
      test::run_processes(1, {"/bin/sh", "-c", "exec \"$0\" mnist:/none 2>&1", KOLO_MNIST});
  CHECK(outcomes[0].exit_code == 1);
  CHECK(outcomes[0].output ==
        "data set 'mnist:/none': '/none' cannot be listed: No such file or directory\n");
}

TEST_CASE("train/README.md shows the example as it is, with fewer than 60 lines") {
  const std::filesystem::path train = std::filesystem::path(KOLO_SOURCE_DIR) / "train";
  const std::string program = text_of(train / "examples/mnist.cpp");
  CHECK(std::ranges::count(program, '\n') < 60);
  REQUIRE_THAT(text_of(train / "README.md"),
               ContainsSubstring(program.substr(program.find("using namespace kolo;"))));
}

}  // namespace kolo::train
