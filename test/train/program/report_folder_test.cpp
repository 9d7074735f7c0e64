// Reports whose folder changes during the run. Either the report is complete, or the terminal has
// the table and the reason, and no partial file is left.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

// A run that, after its first line, still has iterations for most of a second, and evaluations,
// before it writes the report.
Words run_with_report() {
  return small({"compare", "--report=out/here", "--strategies=ring", "--transport=tcp"}, 40);
}

// Waits for the end of the program, which must fail to write the report.
void check_refused(Program& program, const std::string& reason) {
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 1);
  CHECK_THAT(program.output(), ContainsSubstring("images/s, all workers"));  // the table
  CHECK_THAT(program.output(), ContainsSubstring("kolo-train: --report: the folder 'out/here'"));
  CHECK_THAT(program.output(), ContainsSubstring(reason));
}

}  // namespace

TEST_CASE("a report folder that is removed during the run is created again") {
  const Folder folder;
  fs::create_directories(folder.path / "out/here");
  Program program(folder.start(run_with_report()));
  program.wait_for("starting");
  fs::remove_all(folder.path / "out");
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 0);
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "out/here/report.json"));
  CHECK(report["runs"].size() == 1);
  CHECK(fs::file_size(folder.path / "out/here/report.md") > 1000);
  check_nothing_is_left(program, folder);
}

TEST_CASE("a file in place of the report folder is reported and not changed") {
  const std::string place = GENERATE("out", "out/here");
  const Folder folder;
  fs::create_directories(folder.path / "out/here");
  Program program(folder.start(run_with_report()));
  program.wait_for("starting");
  fs::remove_all(folder.path / place);
  std::ofstream(folder.path / place) << "in the way";
  check_refused(program, "Not a directory");
  CHECK(text_of(folder.path / place) == "in the way");
  check_nothing_is_left(program, folder);
}

TEST_CASE("a folder in place of a report file is reported, and no partial report is left") {
  const Folder folder;
  fs::create_directories(folder.path / "out/here/report.json/full");
  Program program(folder.start(run_with_report()));
  check_refused(program, "report.json");
  CHECK(names_in(folder.path / "out/here") == std::set<std::string>{"report.json"});
  check_nothing_is_left(program, folder);
}

TEST_CASE("a full disk is reported, and the report of an earlier run stays complete") {
  const Folder folder;
  fs::create_directories(folder.path / "out/here");
  std::ofstream(folder.path / "out/here/report.json") << "earlier";
  Start start = folder.start(run_with_report());
  // A file size limit simulates a full disk. SIGXFSZ is ignored, because a full disk sends no
  // signal.
  start.prepare = [] { return std::signal(SIGXFSZ, SIG_IGN) != SIG_ERR; };
  Program program(start);
  program.wait_for("starting");
  const rlimit room{64, 64};
  REQUIRE(prlimit(program.process(), RLIMIT_FSIZE, &room, nullptr) == 0);
  check_refused(program, "File too large");
  CHECK(names_in(folder.path / "out/here") == std::set<std::string>{"report.json"});
  CHECK(text_of(folder.path / "out/here/report.json") == "earlier");
  check_nothing_is_left(program, folder);
}
