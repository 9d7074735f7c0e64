// What becomes of a report whose folder changes while the run is on: it is there whole, or the
// table stands on the terminal, a message says why there is no more, and no half file is left.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

// After its first line a run still has iterations for most of a second, and evaluations, before it
// writes.
Words run_with_report() {
  return small({"compare", "--report=out/here", "--strategies=ring", "--transport=tcp"}, 40);
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Lets the program go on to its end, which is a report that cannot be written.
void check_refused(Program& program, const std::string& reason) {
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 1);
  CHECK_THAT(program.output(), ContainsSubstring("images/s, all workers"));  // the table
  CHECK_THAT(program.output(), ContainsSubstring("kolo-train: --report: the folder 'out/here'"));
  CHECK_THAT(program.output(), ContainsSubstring(reason));
}

}  // namespace

TEST_CASE("a report folder that is removed during the run is made again") {
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

TEST_CASE("a file that takes the place of the report folder is named and left alone") {
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

TEST_CASE("a folder that takes the place of a file of the report is named, and no half is left") {
  const Folder folder;
  fs::create_directories(folder.path / "out/here/report.json/full");
  Program program(folder.start(run_with_report()));
  check_refused(program, "report.json");
  CHECK(names_in(folder.path / "out/here") == std::set<std::string>{"report.json"});
  check_nothing_is_left(program, folder);
}

TEST_CASE("a disk without room is named, and the report of an earlier run stays whole") {
  const Folder folder;
  fs::create_directories(folder.path / "out/here");
  std::ofstream(folder.path / "out/here/report.json") << "earlier";
  Start start = folder.start(run_with_report());
  // A limit in the disk's place; where there is no room the kernel sends no signal.
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
