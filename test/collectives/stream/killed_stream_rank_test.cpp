// Ranks killed while operations are on streams, in any state: the others end within moments with
// one cause that names the rank, their streams go on, and none of its memory stays mapped.
#include <chrono>
#include <string>
#include <vector>

#include "test/collectives/support/processes.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "test/transports/store/store_table.h"

namespace kolo::test {
namespace {

constexpr int kSize = 3;
constexpr int kOperations = 6;  // the number of different operations

struct State {
  const char* name;
  int works;
};

// `store`: empty for the store of the test's server.
void kill_one(const std::string& transport, int victim, int operation, const State& state,
              const std::string& store = "") {
  INFO(transport << ": rank " << victim << " dies in operation " << operation << ", " << state.name
                 << ' ' << state.works);
  const auto start = std::chrono::steady_clock::now();
  const std::string in_store = store.empty() ? "" : "KOLO_STORE=" + store + " ";
  const auto outcomes =
      run_processes(kSize, {"/bin/sh", "-c", in_store + "exec \"$0\" \"$@\"",
                            KOLO_CRASHING_STREAM_RANK, transport, std::to_string(victim),
                            std::to_string(operation), state.name, std::to_string(state.works)});
  // Far less than the timeout of the ranks.
  const std::chrono::seconds moments{kIsSanitized ? 30 : 10};
  CHECK(std::chrono::steady_clock::now() - start < moments);
  std::string cause;
  for (int rank = 0; rank < kSize; ++rank) {
    const ProcessOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << outcome.output);
    if (rank == victim) {
      CHECK(outcome.exit_code == 128 + 9);
      continue;
    }
    CHECK(outcome.exit_code == 3);
    if (cause.empty()) cause = outcome.output;
    CHECK(outcome.output == cause);
    CHECK(cause.find("rank " + std::to_string(victim)) != std::string::npos);
  }
}

// Transports over which device memory is staged: all but those that serve devices.
std::vector<std::string> transports_between_processes() {
  auto names = transports_under_test();
  std::erase_if(names,
                [](const std::string& name) { return name == "inproc" || name == "cuda_ipc"; });
  return names;
}

void kill_in_every_operation(const State& state) {
  const std::string transport = GENERATE("auto", "shm", "tcp");
  for (int operation = 0; operation < kOperations; ++operation)
    kill_one(transport, operation % kSize, operation, state);
}

}  // namespace

TEST_CASE("a rank killed before its call is named while streams wait for it") {
  kill_in_every_operation({"uncalled", 0});
}

TEST_CASE("a rank killed while it enqueues an operation is named") {
  kill_in_every_operation({"in_part", 1});
}

TEST_CASE("a rank killed when all is enqueued and nothing has run is named") {
  kill_in_every_operation({"given", 0});
}

TEST_CASE("a rank killed when part of an operation has run is named") {
  kill_in_every_operation({"given", 4});
}

TEST_CASE("a rank killed after its part is done is named by the next operation") {
  kill_in_every_operation({"given", 10'000});
}

TEST_CASE("a rank killed while streams run is named with a store in a file too") {
  const std::string transport = GENERATE("auto", "shm", "tcp");
  const State state = GENERATE(State{"uncalled", 0}, State{"given", 0}, State{"given", 4});
  const TemporaryFile file;
  kill_one(transport, 1, 1, state, "file:" + file.path());
}

TEST_CASE("a rank killed while its data are staged is named over every transport") {
  const std::string transport = GENERATE(from_range(transports_between_processes()));
  // With short segments, a long operation cannot be enqueued whole while the streams do not run.
  for (const State& state : {State{"uncalled", 0}, State{"in_part", 1}, State{"in_part", 20}})
    kill_one(transport, 1, 1, state);
}

TEST_CASE("ranks with devices as processes all end well if none dies") {
  auto transports = transports_between_processes();
  transports.emplace_back("auto");
  for (const std::string& transport : transports) {
    INFO(transport);
    for (const auto& outcome :
         run_processes(kSize, {KOLO_CRASHING_STREAM_RANK, transport, "-1", "0", "given", "0"})) {
      INFO(outcome.output);
      CHECK(outcome.exit_code == 0);
    }
  }
}

}  // namespace kolo::test
