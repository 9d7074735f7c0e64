// Files of flags (--config) that kolo-train reads.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

using namespace kolo::test;

void write_file(const Folder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder.path / name) << text;
}

}  // namespace

TEST_CASE("flags of a file are used, and those of the command line win") {
  const Folder folder;
  write_file(folder, "run.ini",
             "# a comment\nmodel = small\ntrain-size=64\ntest_size = 16\nepochs = 3\n"
             "strategies = ring,ps\nnesterov = true\nbatch-size = 16\n");
  const auto result = run_program(
      folder.start({"compare", "--config=run.ini", "--epochs=1", "--report=out", "--timeout=30"}));
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"));
  CHECK(report["runs"].size() == 2);
  CHECK(report["runs"][0]["epochs"].size() == 1);
  CHECK(report["runs"][0]["terms"]["batch"] == "32 samples over 2 workers");
  CHECK_THAT(report["runs"][0]["terms"]["optimizer"].get<std::string>(),
             ContainsSubstring("Nesterov"));
}

TEST_CASE("a file of flags with a mistake is refused") {
  const Folder folder;
  write_file(folder, "key.ini", "modle = small\n");
  write_file(folder, "value.ini", "model = smal\n");
  write_file(folder, "section.ini", "[more]\nmodel = small\n");
  write_file(folder, "hidden.ini", "events-fd = 3\n");
  const auto check = [&](const std::string& file, const std::string& reason) {
    const auto result = run_program(folder.start({"train", "--config=" + file, "--no-report"}));
    INFO(result.output);
    CHECK(result.exit_code == 2);
    CHECK(std::ranges::count(result.output, '\n') == 1);
    CHECK_THAT(result.output, ContainsSubstring(reason));
  };
  check("key.ini", "--config key.ini: unknown key 'modle'; did you mean --model?");
  check("value.ini", "--model: unknown model 'smal'");
  check("section.ini", "--config section.ini: unknown key '[more]'");
  check("hidden.ini", "--config hidden.ini: unknown key 'events-fd'");
  check("none.ini", "--config none.ini: it cannot be read");
  check("tmp", "--config tmp: it cannot be read");
}
