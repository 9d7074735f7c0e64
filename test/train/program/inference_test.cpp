// The commands evaluate and predict of kolo-train, which use a saved model.
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

using namespace kolo::test;

ProgramResult run_here(const Folder& folder, Words words) {
  return run_program(folder.start(std::move(words)));
}

void train_and_save(const Folder& folder, const std::string& model) {
  const auto result = run_here(
      folder, {"train", "--model=" + model, "--train-size=101", "--test-size=33", "--epochs=1",
               "--batch-size=16", "--save=saved", "--report=out", "--timeout=30"});
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
}

void write_picture(const Folder& folder, const std::string& name, const std::string& header,
                   std::size_t bytes) {
  std::ofstream file(folder.path / name, std::ios::binary);
  file << header;
  for (std::size_t i = 0; i < bytes; ++i) file.put(static_cast<char>(i * 7 % 251));
}

}  // namespace

TEST_CASE("evaluate gives the test loss and accuracy of the run") {
  const Folder folder;
  train_and_save(folder, "small");
  const auto result = run_here(folder, {"evaluate", "--load=saved", "--test-size=33"});
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  std::smatch found;
  REQUIRE(std::regex_search(result.output, found,
                            std::regex("accuracy ([0-9.]+) % of 33 samples, loss ([0-9.]+)")));
  const auto epoch =
      nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"))["runs"][0]["epochs"][0];
  CHECK(std::stod(found[1]) == Approx(100 * epoch["test_accuracy"].get<double>()).margin(0.01));
  CHECK(std::stod(found[2]) == Approx(epoch["test_loss"].get<double>()).margin(1e-5));
}

TEST_CASE("predict prints the most probable classes of each image") {
  const Folder folder;
  train_and_save(folder, "mlp");
  write_picture(folder, "color.ppm", "P6\n# a comment\n32 32\n255\n", 32 * 32 * 3);
  write_picture(folder, "grey.pgm", "P5 32 32 255\n", 32 * 32);
  write_picture(folder, "large.ppm", "P6 96 64 255\n", 96 * 64 * 3);  // resized
  const auto result =
      run_here(folder, {"predict", "--load=saved", "color.ppm", "grey.pgm", "large.ppm"});
  INFO(result.output);
  CHECK(result.exit_code == 0);
  const std::string classes = "(class [0-9]: [0-9.]+ %(, )?){3}\n";
  CHECK(std::regex_match(result.output, std::regex("color.ppm: " + classes + "grey.pgm: " +
                                                   classes + "large.ppm: " + classes)));
}

TEST_CASE("an image or a file that does not fit the model is refused") {
  const Folder folder;
  train_and_save(folder, "mlp");
  write_picture(folder, "good.ppm", "P6 32 32 255\n", 32 * 32 * 3);
  write_picture(folder, "cut.ppm", "P6 32 32 255\n", 100);
  write_picture(folder, "deep.pgm", "P5 32 32 65535\n", 32 * 32 * 2);
  write_picture(folder, "huge.ppm", "P6 99999999 99999999 255\n", 8);
  write_picture(folder, "other.gif", "GIF89a", 8);
  std::ofstream(folder.path / "bare.safetensors", std::ios::binary)
      << std::string("\2\0\0\0\0\0\0\0{}", 10);
  const auto check = [&](Words words, const std::string& reason) {
    const auto result = run_here(folder, std::move(words));
    INFO(result.output);
    CHECK(result.exit_code == 2);
    CHECK(std::ranges::count(result.output, '\n') == 1);
    CHECK_THAT(result.output, ContainsSubstring(reason));
  };
  check({"predict", "--load=saved", "cut.ppm"}, "cut.ppm: it is truncated");
  check({"predict", "--load=saved", "deep.pgm"}, "its values go to 65535");
  check({"predict", "--load=saved", "huge.ppm"}, "99999999 x 99999999 pixels");
  check({"predict", "--load=saved", "other.gif"}, "'other.gif' is neither JPEG nor PNG");
  check({"predict", "--load=saved", "none.ppm"}, "none.ppm");
  check({"predict", "--load=saved"}, "predict needs image files");
  check({"predict", "good.ppm"}, "--load is missing");
  check({"predict", "--load=bare.safetensors", "good.ppm"}, "give --model");
  check({"predict", "--load=bare.safetensors", "--model=mlp", "good.ppm"}, "has no matrix");
  check({"predict", "--load=saved", "--model=small", "good.ppm"}, "it is of the model mlp, not");
  check({"evaluate", "--load=nothing"}, "--load: nothing: No such file");
  check({"evaluate", "--lod=saved"}, "did you mean --load?");
}
