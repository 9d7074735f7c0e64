// kolo-conformance as users run it: its output for a correct transport, for transports that break
// the contract, crash or hang, and for a wrong command line.
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "test/support/catch.h"
#include "transports/conformance/child_process.h"
#include "transports/conformance/clauses.h"

using namespace kolo;

namespace {

struct Ended {
  int exit_code = -1;
  std::string output;
};

Ended run(std::vector<std::string> words) {
  words.insert(words.begin(), KOLO_CONFORMANCE);
  conformance::Child child(words, conformance::Child::Output::kRead);
  Ended ended;
  REQUIRE(child.read_output(ended.output, Clock::now() + std::chrono::minutes(5)));
  const int status = child.wait();
  REQUIRE(WIFEXITED(status));
  ended.exit_code = WEXITSTATUS(status);
  return ended;
}

std::string faulty(const char* fault) { return std::string(KOLO_FAULTY) + fault; }

constexpr const char* kOneWay = "one way: every way to send meets every way to receive";

}  // namespace

TEST_CASE("a library transport that keeps the contract passes every clause that it offers") {
  const Ended ended = run({"--transport", faulty("")});
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring(" 0 failed, ") && !ContainsSubstring("FAILED"));
}

TEST_CASE("a transport that breaks a clause fails it, and the output shows the difference") {
  const Ended corrupt = run({"--transport", faulty("?corrupt"), "--clause", kOneWay});
  INFO(corrupt.output);
  CHECK(corrupt.exit_code == 1);
  CHECK_THAT(corrupt.output, ContainsSubstring("FAILED") && ContainsSubstring("the right byte at"));
  CHECK(run({"--transport", faulty("?overtake"), "--clause", "minimum of credit"}).exit_code == 1);
}

TEST_CASE("a transport that cannot be made fails every clause, and the reason is printed once") {
  const Ended ended = run({"--transport", faulty("?refuse")});
  INFO(ended.output);
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.output, ContainsSubstring("two ranks cannot make it: ") &&
                               ContainsSubstring(" 0 passed, ") && !ContainsSubstring("FAILED"));
  const auto why = ended.output.find("the office is closed today");
  REQUIRE(why != std::string::npos);
  CHECK(ended.output.find("the office is closed today", why + 1) == std::string::npos);
}

TEST_CASE("excluded clauses are not run") {
  const Ended rest = run({"--transport", faulty("?corrupt"), "--clause", kOneWay, "--clause",
                          "one rank alone", "--but", kOneWay});
  INFO(rest.output);
  CHECK(rest.exit_code == 0);
  CHECK_THAT(rest.output, ContainsSubstring("1 passed, 0 failed"));
  CHECK(run({"--transport", "inproc", "--clause", kOneWay, "--but", kOneWay}).exit_code == 2);
  CHECK(run({"--transport", "inproc", "--but", "no such words"}).exit_code == 2);
}

TEST_CASE("a crash or a hang fails its clause, and the program continues") {
  const Ended crash = run({"--transport", faulty("?crash"), "--clause", "one rank alone",
                           "--clause", kOneWay, "--clause", "rank that never comes"});
  INFO(crash.output);
  CHECK(crash.exit_code == 1);
  CHECK_THAT(crash.output, ContainsSubstring("it was ended by signal 11") ||
                               ContainsSubstring("it ended with exit code"));
  CHECK_THAT(crash.output, ContainsSubstring("2 passed, 1 failed"));
  const Ended hang = run({"--transport", faulty("?hang"), "--clause", kOneWay, "--limit", "2"});
  CHECK(hang.exit_code == 1);
  CHECK_THAT(hang.output, ContainsSubstring("it had not ended after 2 s (--limit)"));
}

TEST_CASE("a loss that is never reported fails its clause within the limit") {
  const Ended ended = run({"--transport", faulty("?forget"), "--clause",
                           "a rank that waits for a lost peer", "--limit", "2"});
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.output, ContainsSubstring("0 passed, 1 failed"));
}

TEST_CASE("output that cannot be written is a failure") {
  const std::string program = KOLO_CONFORMANCE;
  for (const char* words : {" --list", " --transport inproc --clause 'wrong call'"}) {
    CHECK(std::system((program + words + " >/dev/null").c_str()) == 0);
    CHECK(std::system((program + words + " >/dev/full 2>/dev/null").c_str()) != 0);
  }
}

TEST_CASE("the option --here runs exactly one clause of one transport in the process itself") {
  const Ended one = run({"--here", "--transport", "inproc", "--clause", "credit comes back"});
  CHECK(one.exit_code == 0);
  CHECK_THAT(one.output, ContainsSubstring("passed"));
  CHECK(run({"--here", "--transport", "inproc", "--clause", "credit"}).exit_code == 2);
  CHECK(run({"--here", "--transport", "inproc"}).exit_code == 2);
  CHECK(run({"--here", "--transport", "inproc,tcp", "--clause", "credit comes"}).exit_code == 2);
}

TEST_CASE("the option --list prints the clauses, and a wrong command line ends with code 2") {
  const Ended listed = run({"--list"});
  CHECK(listed.exit_code == 0);
  for (const auto& clause : conformance::clauses())
    CHECK_THAT(listed.output, ContainsSubstring(std::string(clause.text)));
  CHECK(run({"--help"}).exit_code == 0);
  CHECK(run({}).exit_code == 2);
  CHECK(run({"--transport", "carrier-pigeon"}).exit_code == 2);
  CHECK(run({"--transport", "./nowhere.so"}).exit_code == 2);
  CHECK(run({"--transport", "auto", "--clause", "no such words"}).exit_code == 2);
  CHECK(run({"--transport", "auto", "--limit", "soon"}).exit_code == 2);
  CHECK(run({"--pigeon"}).exit_code == 2);
}
