// Table of measured choices: the file format, and the calls that a point applies to.
#include "collectives/planner/tuning.h"

#include <fstream>
#include <stdexcept>
#include <string>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/transports/store/store_table.h"

namespace kolo {
namespace {

constexpr const char* kTable =
    "# for people\n"
    "  # indented\n"
    "\n"
    "all_reduce 4 shm 1024 one_shot\n"
    "all_reduce 4 shm 65536 two_shot\n"
    "all_reduce 2 shm 1024 recursive_doubling\n"
    "  broadcast 4 tcp 0 chain\n";

}  // namespace

TEST_CASE("a table that was written is read back") {
  const TuningTable table = TuningTable::parse(kTable, "here");
  CHECK(table.points().size() == 4);
  CHECK(TuningTable::parse(table.format(), "there").points() == table.points());
}

TEST_CASE("the nearest point decides, for its own collective, ranks and transport only") {
  const TuningTable table = TuningTable::parse(kTable, "here");
  const auto find = [&](std::size_t bytes) {
    return table.find(Collective::kAllReduce, 4, "shm", bytes);
  };
  CHECK(find(0) == "one_shot");
  CHECK(find(1024) == "one_shot");
  CHECK(find(8000) == "one_shot");
  CHECK(find(9000) == "two_shot");
  CHECK(find(std::size_t{1} << 40) == "two_shot");
  CHECK(table.find(Collective::kAllReduce, 2, "shm", 65536) == "recursive_doubling");
  CHECK_FALSE(table.find(Collective::kAllReduce, 3, "shm", 1024));
  CHECK_FALSE(table.find(Collective::kAllReduce, 4, "tcp", 1024));
  CHECK_FALSE(table.find(Collective::kReduce, 4, "shm", 1024));
  CHECK_FALSE(TuningTable().find(Collective::kAllReduce, 4, "shm", 1024));
}

TEST_CASE("an error names an invalid line with the file and the reason") {
  const auto refuse = [](const std::string& line, const std::string& reason) {
    INFO(line);
    CHECK_THROWS_WITH(TuningTable::parse("# one\n" + line + "\n", "the table 't'"),
                      ContainsSubstring("the table 't', line 2: ") && ContainsSubstring(reason));
  };
  refuse("all_reduce 4 shm 1024", "COLLECTIVE RANKS TRANSPORT BYTES ALGORITHM");
  refuse("all_reduce 4 shm 1024 ring ring", "COLLECTIVE RANKS TRANSPORT BYTES ALGORITHM");
  refuse("all_reduce four shm 1024 ring", "COLLECTIVE RANKS TRANSPORT BYTES ALGORITHM");
  refuse("all_reduce 0 shm 1024 ring", "COLLECTIVE RANKS TRANSPORT BYTES ALGORITHM");
  refuse("all_reduce 4 shm -1 ring", "COLLECTIVE RANKS TRANSPORT BYTES ALGORITHM");
  refuse("allreduce 4 shm 1024 ring", "no collective 'allreduce'; expected one of all_reduce");
  refuse("all_reduce 4 shm 1024 rong", "no algorithm 'rong'");
  refuse("{\"json\": true}", "COLLECTIVE RANKS TRANSPORT BYTES ALGORITHM");
}

TEST_CASE("an error names a missing table") {
  CHECK_THROWS_WITH(
      TuningTable::read("/nowhere/tuning"),
      ContainsSubstring("the tuning table '/nowhere/tuning' cannot be read: No such"));
  CHECK_THROWS_WITH(TuningTable::read("/"), ContainsSubstring("it is not a regular file"));
  CHECK_THROWS_WITH(TuningTable::read("/dev/zero"), ContainsSubstring("it is not a regular file"));
}

TEST_CASE("a table that is too long to publish is an error on all ranks") {
  const test::TemporaryFile file;
  std::ofstream table(file.path());
  for (int i = 0; i < 40'000; ++i) table << "all_reduce 4 shm " << i << " one_shot\n";
  table.close();
  const auto outcomes = test::run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = "inproc";
    options.tuning = file.path();
    const Communicator communicator(rank, 2, store, options);
  });
  for (const test::RankOutcome& outcome : outcomes) {
    CHECK_THAT(outcome.text,
               ContainsSubstring("the tuning table '" + file.path() +
                                 "' (named by CommunicatorOptions::tuning) has "
                                 "40000 points, ") &&
                   ContainsSubstring(" bytes, but at most 983040 can be sent to all ranks"));
  }
}

}  // namespace kolo
