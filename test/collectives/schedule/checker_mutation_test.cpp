// Mutation test of the schedule checker: it must find and name each fault planted into the
// schedules of many algorithms. It must also find the loss of any single step of any schedule.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/algorithms/dissemination.h"
#include "test/collectives/algorithms/proof.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using Program = std::vector<Schedule>;

// A correct program, before a fault is planted.
struct Subject {
  Collective collective;
  const char* algorithm;
  int size;
  bool can_answer = false;
  bool is_dedicated = false;  // push_pull: rank 0 is a dedicated server with an update
};

constexpr Subject kRing{Collective::kAllReduce, "ring", 4};
constexpr Subject kAnsweredRing{Collective::kAllReduce, "ring", 2, true};
constexpr Subject kAllGatherRing{Collective::kAllGather, "ring", 2};
constexpr Subject kHalving{Collective::kAllReduce, "halving_doubling", 3};
constexpr Subject kDoubling{Collective::kAllReduce, "recursive_doubling", 4};
constexpr Subject kTree{Collective::kBroadcast, "binomial_tree", 6};
constexpr Subject kReduceTree{Collective::kReduce, "binomial_tree", 5};
constexpr Subject kDirect{Collective::kReduceScatter, "direct", 3};
constexpr Subject kBruck{Collective::kAllToAll, "bruck", 3};
constexpr Subject kBarrier{Collective::kBarrier, "dissemination", 5};
constexpr Subject kScan{Collective::kScan, "chain", 4};
constexpr Subject kServer{Collective::kPushPull, "parameter_server", 3, true, true};
constexpr Subject kServers{Collective::kPushPull, "parameter_server", 3, true};

Program program_of(const Algorithm& algorithm, const Subject& subject) {
  Program program;
  for (int rank = 0; rank < subject.size; ++rank) {
    PlanRequest request;
    request.ranks.rank = request.servers.rank = rank;
    request.ranks.size = request.servers.size = subject.size;
    request.ranks.can_answer = request.servers.can_answer = subject.can_answer;
    request.servers.has_update = subject.is_dedicated;
    request.servers.servers_work = !subject.is_dedicated;
    for (int server = 0; server < (subject.is_dedicated ? 1 : subject.size); ++server) {
      request.servers.servers.push_back(server);
    }
    program.push_back(algorithm.write(request));
  }
  return program;
}

Program program_of(const Subject& subject) {
  return program_of(algorithms()[find_algorithm(subject.collective, subject.algorithm)], subject);
}

// Three elements per chunk, one more in the first, in two segments.
CheckOptions options_of(const Subject& subject, int credit = kMinimumCredit) {
  CheckOptions options;
  options.count = 3 * static_cast<std::size_t>(subject.size) + 1;
  if (subject.collective == Collective::kAllToAll) --options.count;
  if (subject.collective == Collective::kBarrier) options.count = kBarrierCount;
  options.segment_elements = 2;
  options.credit = credit;
  if (subject.is_dedicated) {
    options.has_update = true;
    options.servers = {0};
  }
  return options;
}

// --- planting faults ---

Step& step(Program& program, std::size_t rank, std::size_t index) {
  return program[rank].steps[index];
}

void erase(Program& program, std::size_t rank, std::size_t first, std::size_t count = 1) {
  const auto begin = program[rank].steps.begin() + static_cast<std::ptrdiff_t>(first);
  program[rank].steps.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void repeat(Program& program, std::size_t rank, std::size_t index) {
  auto& steps = program[rank].steps;
  const Step again = steps[index];
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(index), again);
}

struct Plant {
  const char* name;
  Subject subject;
  void (*plant)(Program& program);
  const char* says;  // the fault that the checker must report
  int credit = kMinimumCredit;
};

constexpr Plant kPlants[] = {
    {"a rank begins with another chunk", kRing,
     [](Program& p) { step(p, 1, 0).in.chunk = step(p, 1, 1).in.chunk = 2; },
     "rank 2, turn 0, step 2 (receive-reduce-send, chunk 0): reduces element 0 of chunk 0 with "
     "element 0 of chunk 2"},
    {"two receives keep what they get in each other's place", kBruck,
     [](Program& p) { std::swap(step(p, 1, 2).out, step(p, 1, 4).out); },
     "rank 1: output element 0 of chunk 3 has the wrong contributions (contributions: 1 of "
     "1)"},
    {"a partial sum is not passed on", kRing, [](Program& p) { erase(p, 2, 2, 2); },
     "rank 2, turn 0, step 2 (receive-reduce-send, chunk 3): reduces element 0 of chunk 3 with "
     "element 0 of chunk 0"},
    {"a child is forgotten", kTree, [](Program& p) { erase(p, 0, 1); },
     "deadlock with a credit of 4 segments: rank 2 at turn 0 step 0 (receive, from 0, to -1); "
     "rank 3 at turn 0 step 0 (receive, from 2, to -1);"},
    {"a child does not receive", kTree, [](Program& p) { erase(p, 5, 0); },
     "deadlock with a credit of 4 segments: rank 0 at turn 8 step 0 (send, from -1, to 4); rank "
     "1 at turn 8 step 0 (receive, from 0, to -1); rank 2 at turn 8 step 0 (receive, from 0, to "
     "-1); rank 3 at turn 8 step 0 (receive, from 2, to -1); rank 4 at turn 3 step 1 (send, from "
     "-1, to 5);"},
    {"a push is summed twice, and another not at all", kServer,
     [](Program& p) {
       repeat(p, 1, 0);
       step(p, 0, 1).from = 1;
     },
     "rank 0, turn 1, step 1 (receive-reduce, chunk 0): counts a contribution twice"},
    {"a rank passes on what it gets, and adds nothing", kReduceTree,
     [](Program& p) { step(p, 2, 0).kind = StepKind::kReceiveSend; },
     "rank 0, turn 0, step 2 (receive-reduce, chunk 0): declares an incomplete sum complete"},
    {"a rank of a scan adds nothing", kScan,
     [](Program& p) {
       step(p, 3, 0).kind = StepKind::kReceive;
       step(p, 3, 0).in = {};
     },
     "rank 3: output element 0 of chunk 0 has the wrong contributions (contributions: 3 of "
     "4)"},
    {"all receive before they send", kRing,
     [](Program& p) {
       for (Schedule& schedule : p) {
         std::rotate(schedule.steps.begin(), schedule.steps.begin() + 2, schedule.steps.end());
       }
     },
     "deadlock with a credit of 4 segments: rank 0 at turn 0 step 0 (receive-reduce-send, from "
     "3, to 1); rank 1 at turn 0 step 0 (receive-reduce-send, from 0, to 2); rank 2 at turn 0 "
     "step 0 (receive-reduce-send, from 1, to 3); rank 3 at turn 0 step 0 (receive-reduce-send, "
     "from 2, to 0);"},
    {"there is less credit than two slices need", kRing, [](Program&) {},
     "deadlock with a credit of 2 segments: rank 0 at turn 0 step 1 (send, from -1, to 1); rank "
     "1 at turn 0 step 1 (send, from -1, to 2); rank 2 at turn 0 step 1 (send, from -1, to 3); "
     "rank 3 at turn 0 step 1 (send, from -1, to 0);",
     2},
    {"two ranks send to each other's partners", kHalving,
     [](Program& p) {
       std::swap(step(p, 0, 0).to, step(p, 1, 0).to);
       std::swap(step(p, 0, 1).to, step(p, 1, 1).to);
     },
     "deadlock with a credit of 4 segments: rank 0 at turn 0 step 2 (receive-reduce, from 1, to "
     "-1); rank 1 at turn 0 step 5 (send, from -1, to 2); rank 2 at turn 0 step 2 "
     "(receive-reduce, from 0, to -1);"},
    {"a sum is declared complete too early", kHalving,
     [](Program& p) { step(p, 0, 2).is_final = true; },
     "rank 0, turn 0, step 2 (receive-reduce, chunk 0): declares an incomplete sum complete"},
    {"a sum is never declared complete", kDirect,
     [](Program& p) { step(p, 0, 3).is_final = false; },
     "rank 0: output element 0 of chunk 0 was never declared complete (contributions: 3 of 3)"},
    {"a rank adds its own once more to the complete sum", kDoubling,
     [](Program& p) {
       Step more = step(p, 0, 3);
       more.kind = StepKind::kReduce;
       more.in = {Place::kInput, 0};
       more.from = kNobody;
       p[0].steps.push_back(more);
     },
     "rank 0, turn 2, step 4 (reduce, chunk 0): counts a contribution twice"},
    {"unwritten memory is sent", kRing, [](Program& p) { step(p, 0, 0).in.place = Place::kOutput; },
     "rank 0, turn 0, step 0 (send, chunk 3): reads memory that was never written"},
    {"memory is overwritten while it is sent", kDoubling,
     [](Program& p) { step(p, 2, 2).is_copied = false; },
     "rank 2, turn 2, step 3 (receive-reduce, chunk 0): writes memory that rank 0 may not have "
     "received yet"},
    {"operands change sides on one rank", kDoubling,
     [](Program& p) { step(p, 3, 1).is_in_last = false; },
     "rank 1: output element 0 of chunk 0 was combined in a different order than on an earlier "
     "rank, and may have other bits"},
    {"a chunk lies outside what the caller gave", kDirect,
     [](Program& p) { step(p, 0, 3).out.chunk = 1; },
     "rank 0, turn 1, step 3 (receive-reduce, chunk 0): reaches outside the caller's buffer"},
    {"an operand is missing", kReduceTree, [](Program& p) { step(p, 1, 0).in = {}; },
     "rank 1, turn 0, step 0 (send, chunk 0): has no operand where it needs one"},
    {"the ends of a channel disagree about a chunk's length", kAllGatherRing,
     [](Program& p) { step(p, 0, 0).chunk = 1; },
     "rank 1, turn 2, step 2 (receive, chunk 0): expects 2 elements and gets 1"},
    {"a segment that waits for an answer gets none", kAnsweredRing,
     [](Program& p) { step(p, 0, 1).kind = StepKind::kReceiveReduce; },
     "rank 0, turn 1, step 1 (receive-reduce, chunk 0): does not answer a segment sent for an "
     "answer"},
    {"a segment is answered that was not sent for it", kAnsweredRing,
     [](Program& p) { step(p, 0, 0).kind = StepKind::kSend; },
     "rank 1, turn 1, step 1 (receive-reduce-answer, chunk 1): answers a segment that expects "
     "none"},
    {"an answer is awaited to what was never sent", kAnsweredRing,
     [](Program& p) { erase(p, 0, 0); },
     "rank 0, turn 2, step 1 (receive-answer, chunk 1): waits for the answer to a segment that "
     "was never sent"},
    {"a held segment is never answered", kServers, [](Program& p) { erase(p, 0, 4); },
     "rank 0: a segment from rank 1 is held past the end of turn 1"},
    {"a segment is answered twice", kServers, [](Program& p) { repeat(p, 0, 4); },
     "rank 0, turn 1, step 5 (answer, chunk 0): answers a segment that is not held"},
    {"an answer is not read back", kServers, [](Program& p) { erase(p, 2, 5, 1); },
     "rank 2: output element 0 of chunk 0 was never written (contributions: 0 of 3)"},
    {"an update is left out", kServer, [](Program& p) { erase(p, 0, 2); },
     "rank 1: output element 0 of chunk 0 was not updated (contributions: 2 of 2)"},
    {"an update is done twice", kServer, [](Program& p) { repeat(p, 0, 2); },
     "rank 0, turn 1, step 3 (update, chunk 0): updates a sum twice"},
    {"an update comes before the last push", kServer,
     [](Program& p) { std::swap(step(p, 0, 1), step(p, 0, 2)); },
     "rank 0, turn 1, step 1 (update, chunk 0): updates an incomplete sum"},
    {"a round of a barrier is left out", kBarrier,
     [](Program& p) {
       for (Schedule& schedule : p) schedule.steps.resize(4);
     },
     "rank 0 leaves the barrier before all ranks have entered"},
    {"a rank sends once too often", kBarrier, [](Program& p) { repeat(p, 0, 4); },
     "1 segments from rank 0 to rank 4 are left over"},
};

TEST_CASE("the checker finds and names each planted fault") {
  for (const Plant& plant : kPlants) {
    INFO(plant.subject.algorithm << ": " << plant.name);
    Program program = program_of(plant.subject);
    REQUIRE(check(program, options_of(plant.subject)).fault == "");
    plant.plant(program);
    CHECK(check(program, options_of(plant.subject, plant.credit)).fault == plant.says);
  }
}

TEST_CASE("the planted faults are of at least a dozen kinds, in at least eight algorithms") {
  std::set<std::string> names;
  std::set<std::string> subjects;
  for (const Plant& plant : kPlants) {
    names.insert(plant.name);
    subjects.insert(std::string(to_string(plant.subject.collective)) + plant.subject.algorithm);
  }
  REQUIRE(names.size() == std::size(kPlants));
  REQUIRE(names.size() >= 12);
  REQUIRE(subjects.size() >= 8);
}

// --- mutations of every step ---

// A fault of one step that no other step can repair.
struct Mutation {
  const char* name;
  // False if it would change nothing.
  bool (*mutate)(Program& program, std::size_t rank, std::size_t index);
};

bool lose(Program& program, std::size_t rank, std::size_t index) {
  erase(program, rank, index);
  return true;
}

// A rank other than `peer` and `self`, of three or more.
std::int16_t another(std::size_t self, std::int16_t peer, std::size_t size) {
  const auto n = static_cast<int>(size);
  const int next = (peer + 1) % n;
  return static_cast<std::int16_t>(next == static_cast<int>(self) ? (next + 1) % n : next);
}

bool send_elsewhere(Program& program, std::size_t rank, std::size_t index) {
  Step& victim = step(program, rank, index);
  if (victim.to == kNobody || program.size() < 3) return false;
  victim.to = another(rank, victim.to, program.size());
  return true;
}

bool expect_another(Program& program, std::size_t rank, std::size_t index) {
  Step& victim = step(program, rank, index);
  if (victim.from == kNobody || program.size() < 3) return false;
  victim.from = another(rank, victim.from, program.size());
  return true;
}

bool keep_elsewhere(Program& program, std::size_t rank, std::size_t index) {
  Step& victim = step(program, rank, index);
  if (victim.out.place != Place::kOutput || program[rank].chunks == 1) return false;
  victim.out.chunk = static_cast<std::uint16_t>((victim.out.chunk + 1) % program[rank].chunks);
  return true;
}

bool misjudge(Program& program, std::size_t rank, std::size_t index) {
  Step& victim = step(program, rank, index);
  victim.is_final = !victim.is_final;
  const bool is_scan = program[rank].collective == Collective::kScan ||
                       program[rank].collective == Collective::kExclusiveScan;
  const bool reduces =
      victim.kind == StepKind::kReceiveReduce || victim.kind == StepKind::kReceiveReduceSend ||
      victim.kind == StepKind::kReceiveReduceCopySend ||
      victim.kind == StepKind::kReceiveReduceAnswer || victim.kind == StepKind::kReduce;
  return reduces && !is_scan;  // a scan is never divided
}

const Mutation kMutations[] = {{"is lost", lose},
                               {"sends to another rank", send_elsewhere},
                               {"expects another rank", expect_another},
                               {"keeps what it has in another chunk", keep_elsewhere},
                               {"is wrong about whether a sum is complete", misjudge}};

// Mutates every step of every rank, one at a time. Chunks have as many segments as programs have
// slices.
void mutate_all(const Algorithm& algorithm, const Subject& subject, const Mutation& mutation,
                std::size_t& found) {
  const Program right = program_of(algorithm, subject);
  CheckOptions options = options_of(subject);
  options.segment_elements = 1;
  if (algorithm.collective != Collective::kBarrier) options.count = 4 * right.size();
  REQUIRE(check(right, options).fault == "");
  for (std::size_t rank = 0; rank < right.size(); ++rank) {
    for (std::size_t index = 0; index < right[rank].steps.size(); ++index) {
      Program wrong = right;
      if (!mutation.mutate(wrong, rank, index)) continue;
      ++found;
      if (!check(wrong, options).is_proved()) continue;
      FAIL(describe(right[rank]) << "step " << index << " " << mutation.name << ": not found");
    }
  }
}

TEST_CASE("the checker finds every lost or changed step of every algorithm") {
  for (const Mutation& mutation : kMutations) {
    std::size_t found = 0;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective == Collective::kMessage) continue;  // two ranks and two steps only
      for (const int size : {2, 5, 6}) {
        for (const bool can_answer : {false, true}) {
          mutate_all(algorithm, {algorithm.collective, "", size, can_answer}, mutation, found);
        }
      }
    }
    INFO(mutation.name << ": " << found);
    REQUIRE(found > 100);
  }
}

}  // namespace
}  // namespace kolo::test
