// Aborted runs: ranks that are killed or stopped at different points, and a launcher that gets a
// signal. No process and no file is left, and the failed rank is reported.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"
#include "test/train/program/started_ranks.h"

namespace {

using namespace kolo::test;

struct Victim {
  std::string strategy;
  int rank;
};

// The rank of a ring that reports progress, one that does not, and the server of a ps.
Victim any_victim() { return GENERATE(Victim{"ring", 0}, Victim{"ring", 1}, Victim{"ps", 2}); }

Words compare(const std::string& strategy) {
  return {"compare", "--report", "out", "--strategies", strategy};
}

void check_killed(Program& program, const Folder& folder, const Victim& victim) {
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + SIGKILL);
  CHECK_THAT(program.output(),
             ContainsSubstring("kolo-train: " + victim.strategy + ": rank " +
                               std::to_string(victim.rank) + " was killed by signal 9"));
  const std::string said = program.output();
  CHECK(said.find(" is gone") ==
        said.rfind(" is gone"));  // reported by only one of the remaining ranks
  const auto says_server = ContainsSubstring("rank 2 was a dedicated server");
  if (victim.strategy == "ps") {
    CHECK_THAT(program.output(), says_server);
  } else {
    CHECK_THAT(program.output(), !says_server);
  }
  CHECK(names_in(folder.path / "out").empty());
  check_nothing_is_left(program, folder);
}

}  // namespace

TEST_CASE("a rank that is killed at its start ends all ranks and is reported") {
  const Victim victim = any_victim();
  const Folder folder;
  Program program(folder.start(endless_training(compare(victim.strategy))));
  kill(program.wait_for_rank(victim.rank), SIGKILL);
  check_killed(program, folder, victim);
}

TEST_CASE("a rank that is killed in training ends all ranks and is reported") {
  const Victim victim = any_victim();
  const Folder folder;
  Program program(folder.start(endless_training(compare(victim.strategy))));
  program.wait_for(kTraining);
  kill(program.rank_process(victim.rank), SIGKILL);
  check_killed(program, folder, victim);
}

TEST_CASE("a rank that is killed in evaluation ends all others, and each reports it") {
  const int victim = GENERATE(0, 1, 2);  // two workers and a server
  const Folder folder;
  StartedRanks ranks(folder, endless_evaluation({"train", "--strategies=ps"}), 3);
  ranks.wait_for_event(kEvaluating);
  ranks[victim].signal(SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    const int code = ranks[rank].wait();
    INFO("rank " << rank << ": " << ranks[rank].output());
    CHECK(code == (rank == victim ? 128 + SIGKILL : 1));
    if (rank == victim) continue;
    CHECK_THAT(ranks[rank].output(), ContainsSubstring("rank " + std::to_string(victim)));
    CHECK_THAT(ranks[rank].output(), ContainsSubstring("is gone"));
  }
  for (int rank = 0; rank < 3; ++rank) check_nothing_is_left(ranks[rank], folder);
}

TEST_CASE("a rank that stops in training is reported by all others after the timeout") {
  const Folder folder;
  Words words = endless_training({"train", "--ranks=3"});
  words.push_back("--timeout=3");
  StartedRanks ranks(folder, words, 3);
  ranks.wait_for_event("\"activity\":\"training\"");
  ranks[1].signal(SIGSTOP);
  for (const int rank : {0, 2}) {
    const int code = ranks[rank].wait();
    INFO("rank " << rank << ": " << ranks[rank].output());
    CHECK(code == 1);
    CHECK_THAT(ranks[rank].output(), ContainsSubstring("timed out after 3.0 s"));
    CHECK_THAT(ranks[rank].output(), ContainsSubstring("is rank 1 alive"));
  }
  ranks[1].signal(SIGCONT);
  const int code = ranks[1].wait();
  INFO("rank 1: " << ranks[1].output());
  CHECK(code == 1);
  CHECK_THAT(ranks[1].output(), ContainsSubstring("timed out after 3.0 s"));
  for (int rank = 0; rank < 3; ++rank) check_nothing_is_left(ranks[rank], folder);
}

TEST_CASE("a rank that stops together with its store is reported by all others") {
  const Folder folder;
  Words words = endless_training({"train", "--ranks=3"});
  words.push_back("--timeout=3");
  StartedRanks ranks(folder, words, 3);
  ranks.wait_for_event("\"activity\":\"training\"");
  ranks[0].signal(SIGSTOP);
  std::string all;
  for (const int rank : {1, 2}) {
    const int code = ranks[rank].wait();
    INFO("rank " << rank << ": " << ranks[rank].output());
    CHECK(code == 1);
    CHECK_THAT(ranks[rank].output(), ContainsSubstring("rank 0"));
    all += ranks[rank].output();
  }
  // The second rank may only see the end of the first: the store, which has the reason, is stopped.
  CHECK_THAT(all, ContainsSubstring("timed out after 3.0 s"));
  ranks[0].signal(SIGCONT);
  CHECK(ranks[0].wait() == 1);
  for (int rank = 0; rank < 3; ++rank) check_nothing_is_left(ranks[rank], folder);
}

TEST_CASE("a rank that stops is ended with the others") {
  const Folder folder;
  Words words = endless_training(compare("ring"));
  words.push_back("--timeout=3");
  Program program(folder.start(words));
  program.wait_for(kTraining);
  kill(program.rank_process(1), SIGSTOP);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 1);
  CHECK_THAT(program.output(), ContainsSubstring("is rank 1 alive"));
  CHECK(names_in(folder.path / "out").empty());
  check_nothing_is_left(program, folder);
}

TEST_CASE("a launcher that gets a signal ends all ranks") {
  const int number = GENERATE(SIGTERM, SIGINT, SIGKILL);
  INFO("signal " << number);
  const Folder folder;
  Program program(folder.start(endless_training(compare("ps"))));
  program.wait_for(kTraining);
  program.signal(number);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + number);
  if (number == SIGINT) CHECK_THAT(program.output(), ContainsSubstring("ps: interrupted\n"));
  if (number == SIGTERM) {
    CHECK_THAT(program.output(), ContainsSubstring("after signal " + std::to_string(number)));
    CHECK_THAT(program.output(), ContainsSubstring("was passed on"));
  }
  CHECK(names_in(folder.path / "out").empty());
  check_nothing_is_left(program, folder);
}

TEST_CASE("an arm whose rank is killed does not end the others, which are reported") {
  const Folder folder;
  Program program(folder.start(small(compare("ring,ps"))));
  kill(program.wait_for_rank(2), SIGKILL);  // only ps has a rank 2
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + SIGKILL);
  CHECK_THAT(program.output(), ContainsSubstring("kolo-train: ps: rank 2 was killed by signal 9") &&
                                   ContainsSubstring("INCOMPLETE: only 1 of the runs finished"));
  CHECK(names_in(folder.path / "out").contains("report.md"));
  check_nothing_is_left(program, folder);
}

TEST_CASE("an interrupt keeps the finished runs beside an older report, marked") {
  const int number = GENERATE(SIGHUP, SIGINT, SIGTERM);
  INFO("signal " << number);
  const Folder folder;
  std::filesystem::create_directory(folder.path / "out");
  std::ofstream(folder.path / "out" / "report.md") << "older";
  Words words = small(compare("ring"), 20);
  words.push_back("--seeds=2");
  Program program(folder.start(std::move(words)));
  program.wait_for("(run 2 of 2): starting");
  program.signal(number);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + number);
  CHECK(names_in(folder.path / "out") == std::set<std::string>{"report.md"});
  CHECK(names_in(folder.path / "out.interrupted").contains("report.json"));
  CHECK_THAT(program.output(), ContainsSubstring("INCOMPLETE: only 1 of the runs finished") &&
                                   ContainsSubstring("out.interrupted/report.md"));
  check_nothing_is_left(program, folder);
}

TEST_CASE("an interrupt of the first arm keeps the epochs that have ended, marked") {
  const Folder folder;
  Program program(folder.start(small(compare("ring"), 100'000)));
  program.wait_for(", test ");  // of the first epoch
  program.signal(SIGINT);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + SIGINT);
  CHECK_THAT(program.output(),
             ContainsSubstring("INCOMPLETE: no run has finished. ring: interrupted") &&
                 ContainsSubstring("\nring        "));
  const auto names = names_in(folder.path / "out.interrupted");
  CHECK((names.contains("report.json") && names.contains("metrics.csv")));
  check_nothing_is_left(program, folder);
}

TEST_CASE("a rank that is killed while its arm waits for its turn is reported at once") {
  const Folder folder;
  Program program(folder.start(endless_training(compare("ring,ps"))));
  program.wait_for(kTraining);  // ring, which has the first turn
  kill(program.rank_process(2), SIGKILL);
  program.wait_for("kolo-train: ps: rank 2 was killed by signal 9");
  program.signal(SIGTERM);
  CHECK(program.wait() == 128 + SIGKILL);  // of the first failure
  check_nothing_is_left(program, folder);
}

TEST_CASE("a launcher that gets a signal ends the arms that train and those that wait") {
  const int number = GENERATE(SIGTERM, SIGINT, SIGKILL);
  INFO("signal " << number);
  const Folder folder;
  Program program(folder.start(endless_training(compare("ring,ps,ps:async"))));
  program.wait_for(kTraining);
  program.signal(number);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + number);
  if (number == SIGINT) CHECK_THAT(program.output(), ContainsSubstring(": interrupted\n"));
  check_nothing_is_left(program, folder);
}
