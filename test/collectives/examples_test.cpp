// Tests that the examples behave as their head comments say.
#include <cstdlib>
#include <string>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

bool says(const ProcessOutcome& outcome, const std::string& text) {
  return outcome.exit_code == 0 && outcome.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("the example with ranks as threads sums over inproc") {
  const auto outcomes = run_processes(1, {KOLO_SUM_IN_THREADS, "4"});
  INFO(outcomes[0].output);
  for (const char rank : {'0', '1', '2', '3'}) {
    REQUIRE(says(outcomes[0], std::string("rank ") + rank + " of 4 over inproc: the sum is 10"));
  }
}

TEST_CASE("the example with ranks as processes sums with settings from the environment") {
  for (const auto& outcome : run_processes(3, {KOLO_SUM_IN_PROCESSES})) {
    INFO(outcome.output);
    REQUIRE(says(outcome, "the average is 2, ten times the largest is 30"));
  }
}

TEST_CASE("one of the ranks reports a misspelt setting, once") {
  ::setenv("KOLO_SEGMENT_BYTE", "4096", 1);
  ::setenv("KOLO_TEST_PROGRAM", "known", 1);
  const auto outcomes =
      run_processes(3, {"/bin/sh", "-c", "exec \"$0\" 2>&1", KOLO_SUM_IN_PROCESSES});
  ::unsetenv("KOLO_SEGMENT_BYTE");
  ::unsetenv("KOLO_TEST_PROGRAM");
  std::string all;
  for (const auto& outcome : outcomes) {
    INFO(outcome.output);
    REQUIRE(says(outcome, "the average is 2, ten times the largest is 30"));
    all += outcome.output;
  }
  const std::string told =
      "kolo: KOLO_SEGMENT_BYTE is not a setting of kolo, and nothing reads it; did you mean "
      "KOLO_SEGMENT_BYTES?\n";
  const auto first = all.find("kolo: ");
  REQUIRE(first != std::string::npos);
  REQUIRE(all.substr(first, told.size()) == told);
  REQUIRE(all.find("kolo: ", first + 1) == std::string::npos);
}

TEST_CASE("workers learn from a server that holds the parameters") {
  for (const auto& outcome : run_processes(3, {KOLO_PARAMETER_SERVER})) {
    INFO(outcome.output);
    REQUIRE(says(outcome, "x = 3.000"));
  }
}

TEST_CASE("workers of different speed learn from an asynchronous server") {
  const auto outcomes = run_processes(3, {KOLO_ASYNC_SERVER});
  INFO(outcomes[0].output << outcomes[1].output << outcomes[2].output);
  REQUIRE(says(outcomes[0], "server: 90 updates"));  // of 3 keys by 10 and 20 gradients
  // The gradients of one worker may be old when they are applied, so x ends near 3, not at it.
  REQUIRE(says(outcomes[1], "worker 1: x = "));
  REQUIRE(says(outcomes[2], "worker 2: x = "));
}

TEST_CASE("the example in C gives the activations of one rank on any number of ranks") {
  for (const int size : {1, 3}) {
    for (const auto& outcome : run_processes(size, {KOLO_TENSOR_PARALLEL})) {
      INFO(outcome.output);
      REQUIRE(says(outcome, "32 layers, the mean activation is 1.001; all-reduce of 65536 bytes"));
    }
  }
}

TEST_CASE("five lines distribute a training loop, and all ranks get the same parameters") {
  for (const auto& outcome : run_processes(3, {KOLO_FIVE_LINE_CHANGE})) {
    INFO(outcome.output);
    REQUIRE(says(outcome, "y = 2.000 x + 1.000"));
  }
}

}  // namespace kolo::test
