// Proof of every row of the algorithm table, for every size from 1 to 64 and for 128, 255 and 256:
// the result, the bits, the number of elements that each rank sends, no deadlock with the smallest
// credit, and no read before the write. A new row is included automatically. It fails until it has
// a formula in algorithms/algorithm_table_proof.cpp and a line in collectives/README.md.
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "test/collectives/algorithms/algorithm_table_proof.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

void prove_all_of(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != collective) continue;
    INFO(to_string(collective) << " " << algorithm.name);
    if (formula_of(collective, algorithm.name) == nullptr) {
      FAIL(
          "no formula says what a rank sends: add its row to kFormulas in "
          "algorithms/algorithm_table_proof.cpp");
    }
    for (const Trial& trial : trials_of(algorithm)) {
      const std::string fault = disproof_of(algorithm, trial);
      if (!fault.empty()) FAIL(fault);
    }
    SUCCEED();
  }
}

TEST_CASE("every all_reduce of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kAllReduce);
}
TEST_CASE("every reduce_scatter of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kReduceScatter);
}
TEST_CASE("every all_gather of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kAllGather);
}
TEST_CASE("every broadcast of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kBroadcast);
}
TEST_CASE("every barrier of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kBarrier);
}
TEST_CASE("every push_pull of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kPushPull);
}

TEST_CASE("every push and every pull of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kPush);
  prove_all_of(Collective::kPull);
}
TEST_CASE("every reduce of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kReduce);
}
TEST_CASE("every gather of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kGather);
}
TEST_CASE("every scatter of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kScatter);
}
TEST_CASE("every all_to_all of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kAllToAll);
}
TEST_CASE("every scan of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kScan);
  prove_all_of(Collective::kExclusiveScan);
}
TEST_CASE("every message of the table is proved for 1 to 64 ranks and more") {
  prove_all_of(Collective::kMessage);
}

TEST_CASE("the proofs leave out no row of the table") {
  for (const Algorithm& algorithm : algorithms()) {
    INFO(to_string(algorithm.collective) << " " << algorithm.name);
    REQUIRE(formula_of(algorithm.collective, algorithm.name) != nullptr);
    std::set<int> sizes;
    for (const Trial& trial : trials_of(algorithm)) {
      REQUIRE(trial.proofs() > 0);
      sizes.insert(trial.size);
    }
    for (int size = 1; size <= 64; ++size) {
      const bool has_nobody_to_talk_to = size == 1 && algorithm.collective == Collective::kMessage;
      REQUIRE((has_nobody_to_talk_to || sizes.count(size) == 1));
    }
    for (const int size : {128, 255, 256}) REQUIRE(sizes.count(size) == 1);
  }
}

TEST_CASE("the README shows the table of proofs as it is") {
  std::ifstream file(KOLO_COLLECTIVES_README);
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  for (const std::string& line : table_of_proofs()) {
    INFO("collectives/README.md has no line\n" << line);
    REQUIRE(lines.count(line) == 1);
  }
}

// collectives_proofs "[table]" prints the lines for the README
TEST_CASE("print the table of proofs", "[.][table]") {
  for (const std::string& line : table_of_proofs()) std::puts(line.c_str());
}

}  // namespace
}  // namespace kolo::test
