// Files that kolo-train writes beside its report and its checkpoints.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

using namespace kolo::test;

TEST_CASE("the epochs and how the run was started are beside the report and the checkpoints") {
  const Folder folder;
  Words words = small({"train", "--report=out", "--save=saved", "--eval-every=2"}, 3);
  const auto result = run_program(folder.start(words));
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  std::ifstream lines(folder.path / "out/metrics.jsonl");
  int epochs = 0;
  for (std::string line; std::getline(lines, line); ++epochs) {
    const auto epoch = nlohmann::json::parse(line);
    CHECK(epoch["arm"] == "ring");
    CHECK(epoch["epoch"] == epochs + 1);
  }
  CHECK(epochs == 3);
  const std::string table = text_of(folder.path / "out/metrics.csv");
  CHECK(table.starts_with("arm,seed,epoch,iterations,train_loss,"));
  CHECK(std::ranges::count(table, '\n') == 4);
  CHECK_THAT(table, ContainsSubstring(",,,"));  // an epoch without evaluation
  CHECK(names_in(folder.path / "out/tensorboard/ring seed 1").size() == 1);
  CHECK_FALSE(names_in(folder.path / "out").contains("metrics.csv.part"));
  const auto manifest = nlohmann::json::parse(std::ifstream(folder.path / "out/manifest.json"));
  CHECK(manifest["command"].get<std::string>().starts_with("kolo-train train --report=out"));
  CHECK(manifest["flags"]["--epochs"] == "3");
  CHECK(manifest["machine"].contains("commit"));
  CHECK(manifest.contains("host"));
  const auto saved = nlohmann::json::parse(std::ifstream(folder.path / "saved/manifest.json"));
  CHECK(saved["flags"] == manifest["flags"]);
}

TEST_CASE("epochs are written while the training goes on, and earlier files stay if it is killed") {
  const Folder folder;
  std::filesystem::create_directory(folder.path / "out");
  std::ofstream(folder.path / "out/metrics.csv") << "earlier\n";
  Words words = small({"train", "--report=out"}, 100'000);
  Program program(folder.start(words));
  program.wait_for("epoch");
  while (text_of(folder.path / "out/metrics.csv.part").find("ring,1,2,") == std::string::npos) {
    std::this_thread::yield();
  }
  program.signal(SIGKILL);
  program.wait();
  CHECK(text_of(folder.path / "out/metrics.jsonl.part").starts_with("{"));
  CHECK(text_of(folder.path / "out/metrics.csv") == "earlier\n");
}
