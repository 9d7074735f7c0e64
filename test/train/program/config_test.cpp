// Files of flags (--config) that kolo-train reads.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

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

TEST_CASE("a file of flags is read once, and a flag given here replaces its alternative") {
  const Folder folder;
  REQUIRE(mkfifo((folder.path / "pipe").c_str(), 0600) == 0);
  std::jthread writer([path = folder.path / "pipe"] {
    std::ofstream(path) << "model = small\ntrain-size = 64\ntest-size = 16\nepochs = 1\n"
                           "batch-size = 16\nno-report\n";
  });
  const auto result = run_program(folder.start(
      {"compare", "--config=pipe", "--global-batch=8", "--report=out", "--timeout=30"}));
  // If kolo-train has not read the pipe, the writer still waits for a reader.
  const int reader = open((folder.path / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  writer.join();
  close(reader);
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"));
  CHECK(report["runs"][0]["terms"]["batch"] == "8 samples over 2 workers");
  CHECK_THAT(report["runs"][0]["terms"]["model"].get<std::string>(), ContainsSubstring("small"));
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
  write_file(folder, "colon.ini", "model: small\n");
  write_file(folder, "help.ini", "help\n");
  write_file(folder, "empty.ini", "seed =\n");
  check("colon.ini", "--config colon.ini: 'model: small' is no flag; expected lines as batch-size");
  check("help.ini", "--config help.ini: unknown key 'help'");
  check("empty.ini", "--seed: expected a whole number of at least 0, got ''");
  check("none.ini", "--config none.ini: it cannot be read");
  check("tmp", "--config tmp: it cannot be read");
}
