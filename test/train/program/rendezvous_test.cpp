// Failed rendezvous of ranks that another launcher started: each rank reports the cause and what to
// do.
#include <algorithm>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"
#include "test/train/program/started_ranks.h"

namespace {

using namespace kolo::test;

Words train(const std::string& ranks, const std::string& timeout_s) {
  Words words = small({"train", "--ranks=" + ranks});
  words.push_back("--timeout=" + timeout_s);
  return words;
}

// Checks that the output is one line with all these parts.
void check_says(const std::string& output, const Words& parts) {
  INFO(output);
  CHECK(std::count(output.begin(), output.end(), '\n') == 1);
  for (const std::string& part : parts) CHECK_THAT(output, ContainsSubstring(part));
}

}  // namespace

TEST_CASE("a port in use by another program is reported by the rank that should serve there") {
  const Folder folder;
  const Port port(Port::Use::kTaken);
  const ProgramResult ended = run_program(rank_start(folder, train("2", "30"), 0, 2, port));
  CHECK(ended.exit_code == 1);
  check_says(ended.output, {"kolo-train: rank 0: ", "cannot listen on port " + port.number(),
                            "another program has it, choose another port"});
}

TEST_CASE("a port where another program answers is reported by the ranks that connect to it") {
  const Folder folder;
  const Port port(Port::Use::kTaken);
  const ProgramResult ended = run_program(rank_start(folder, train("2", "1"), 1, 2, port));
  CHECK(ended.exit_code == 1);
  check_says(ended.output,
             {"kolo-train: rank 1: ", "127.0.0.1:" + port.number(),
              "another program seems to own that port", "choose another MASTER_PORT"});
}

TEST_CASE("ranks that never start are reported by the rank that waits for them") {
  const std::string transport = GENERATE("shm", "tcp");
  const Folder folder;
  const Port port(Port::Use::kKept);
  Words words = train("3", "1");
  words.push_back("--transport=" + transport);
  const ProgramResult ended = run_program(rank_start(folder, words, 0, 3, port));
  CHECK(ended.exit_code == 1);
  check_says(ended.output, {"kolo-train: rank 0", "ranks 1, 2", "start"});
}

TEST_CASE("a rank that never starts is reported by all others") {
  const Folder folder;
  const Port port(Port::Use::kKept);
  Program first(rank_start(folder, train("3", "3"), 0, 3, port));
  Program second(rank_start(folder, train("3", "3"), 1, 3, port));
  for (Program* program : {&first, &second}) {
    CHECK(program->wait() == 1);
    check_says(program->output(), {"kolo-train: rank ", "rank 2", "start"});
    check_nothing_is_left(*program, folder);
  }
}

TEST_CASE("a rank whose rank 0 never starts reports the missing rank and the address") {
  const Folder folder;
  const Port port(Port::Use::kKept);
  const ProgramResult ended = run_program(rank_start(folder, train("2", "1"), 1, 2, port));
  CHECK(ended.exit_code == 1);
  check_says(ended.output, {"kolo-train: rank 1: ", "127.0.0.1:" + port.number(), "start rank 0",
                            "correct MASTER_ADDR and MASTER_PORT"});
}
