// Findings of reports from artificial records: warnings of doubtful times and slow workers.
#include "train/report/findings.h"

#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/train/report/made_up_report.h"

namespace {

using namespace kolo::train;
using kolo::test::made_up_report;
using kolo::test::made_up_run;

// A report of one run with `workers` equal workers and enough iterations for warnings.
Report made_up_workers(const std::string& arm, int workers) {
  Report report = made_up_report();
  report.runs = {made_up_run(arm, 1, 0)};
  RunRecord& run = report.runs.front();
  run.workers = workers;
  run.step_seconds.assign(31, 0.25);
  run.counted_iterations = 30;
  run.ranks.resize(static_cast<std::size_t>(workers), run.ranks.front());
  for (int rank = 0; rank < workers; ++rank) run.ranks[static_cast<std::size_t>(rank)].rank = rank;
  return report;
}

// Makes a part of a worker's computing longer. The others wait for it in exposed communication.
void make_slow(RunRecord& run, int slow, Part part, double seconds) {
  for (RankRecord& rank : run.ranks) {
    const Part longer = rank.rank == slow ? part : Part::exposed;
    rank.parts[static_cast<std::size_t>(longer)] += seconds;
    rank.step_seconds += seconds;
  }
}

}  // namespace

TEST_CASE("a warning reports iterations with very different times") {
  Report report = made_up_report();
  for (RunRecord& run : report.runs) {
    run.step_seconds.assign(31, 0.2);
    run.counted_iterations = 30;
  }
  CHECK_THAT(report_text(report), !ContainsSubstring("WARNING"));
  for (std::size_t i = 1; i < 10; ++i) report.runs[1].step_seconds[i] = 0.5;
  CHECK_THAT(report_text(report),
             ContainsSubstring("WARNING: the iterations of ps took from 200 to 500 ms"));
  CHECK_THAT(report_text(report), !ContainsSubstring("iterations of ring took"));
}

TEST_CASE("one warning names all arms and seeds with very different times") {
  Report report;
  for (const std::uint64_t seed : {1, 2}) {
    for (const char* arm : {"ring", "ps", "ps:everywhere"}) {
      RunRecord run = made_up_run(arm, seed, 0);
      run.step_seconds.assign(31, 0.2);
      run.counted_iterations = 30;
      const std::string name = arm;
      const double slow = name == "ps:everywhere" ? 0.2 : (seed == 2 && name == "ps" ? 0.6 : 0.5);
      for (std::size_t i = 1; i < 10; ++i) run.step_seconds[i] = slow;
      report.runs.push_back(run);
    }
  }
  std::string warning;
  for (const std::string& sentence : findings(report)) {
    if (!sentence.starts_with("WARNING: the iterations")) continue;
    CHECK(warning.empty());
    warning = sentence;
  }
  CHECK_THAT(warning, ContainsSubstring("iterations of ring, seed 1, took from 200 to 500 ms; of "
                                        "ps, seed 2, from 200 to 600 ms (10th"));
  CHECK_THAT(warning, !ContainsSubstring("everywhere"));
}

TEST_CASE("a warning reports a machine that was slower in one run, with both times of forward") {
  Report report = made_up_report();
  for (RunRecord& run : report.runs) {
    run.step_seconds.assign(31, 0.2);
    run.counted_iterations = 30;
  }
  for (RankRecord& rank : report.runs[0].ranks) rank.forward_median *= 1.14;
  CHECK_THAT(report_text(report), !ContainsSubstring("WARNING"));
  for (RankRecord& rank : report.runs[0].ranks) rank.forward_median *= 1.02;
  const std::string warning =
      "WARNING: the machine was not equally fast for all runs: forward, the same work in each, "
      "took 50.3 ms in ps and 58.5 ms in ring (medians); repeat the runs";
  CHECK_THAT(report_text(report), ContainsSubstring(warning) && ContainsSubstring("take turns"));
  CHECK_THAT(report_markdown(report), ContainsSubstring(warning));
  for (RankRecord& rank : report.runs[1].ranks) rank.forward_median *= 2;
  report.runs[1].seed = 2;
  CHECK_THAT(report_text(report), ContainsSubstring("58.5 ms in ring, seed 1 and 100.6 ms in ps, "
                                                    "seed 2 (medians), or its dedicated servers"));
}

TEST_CASE("a warning names the worker that all others wait for, and what took longer") {
  const std::string warning = "WARNING: one worker kept all others waiting";
  Report report = made_up_workers("ring", 4);
  CHECK_THAT(report_text(report), !ContainsSubstring(warning));
  make_slow(report.runs[0], 2, Part::backward, 0.02);  // 7 % of an iteration
  CHECK_THAT(report_text(report), !ContainsSubstring(warning));
  make_slow(report.runs[0], 2, Part::forward, 0.011);  // together 11 %
  CHECK_THAT(report_text(report),
             ContainsSubstring(
                 warning + " for more than 10 % of an iteration (ring: rank 2, whose backward took "
                           "140.0 ms, the others' 120.0 ms on average)"));
  CHECK_THAT(report_markdown(report), ContainsSubstring(warning));
  report.runs[0].counted_iterations = 19;
  CHECK_THAT(report_text(report), !ContainsSubstring(warning));
}

TEST_CASE("each part of a slow worker's computing has a name in the warning") {
  const Part part =
      GENERATE(Part::data, Part::forward, Part::backward, Part::optimizer, Part::other);
  Report report = made_up_workers("ps", 2);
  make_slow(report.runs[0], 1, part, 0.1);
  const std::string name(kPartNames[static_cast<std::size_t>(part)]);
  CHECK_THAT(report_text(report), ContainsSubstring("(ps: rank 1, whose " + name + " took"));
}

TEST_CASE(
    "no single worker is named if two are slow, if all only communicate, or if one is alone") {
  const std::string warning = "kept all others waiting";
  Report report = made_up_workers("ring", 4);
  make_slow(report.runs[0], 1, Part::backward, 0.1);
  for (RankRecord& rank : report.runs[0].ranks) {
    if (rank.rank == 3) rank.parts = report.runs[0].ranks[1].parts;
  }
  CHECK_THAT(report_text(report), !ContainsSubstring(warning));
  report = made_up_workers("ring", 2);  // rank 1's communication is longer, as is its iteration
  report.runs[0].ranks[1].step_seconds += 0.1;
  report.runs[0].ranks[1].parts[static_cast<std::size_t>(Part::exposed)] += 0.1;
  CHECK_THAT(report_text(report), !ContainsSubstring(warning));
  CHECK_THAT(report_text(made_up_workers("ring", 1)), !ContainsSubstring(warning));
}

TEST_CASE("workers that do not wait for each other have no warning of a slow one") {
  Report report = made_up_workers("ps:async", 3);
  make_slow(report.runs[0], 1, Part::forward, 0.1);
  report.runs[0].difference = "gradients are stale";
  CHECK_THAT(report_text(report), !ContainsSubstring("kept all others waiting"));
  report = made_up_workers("dataparallel", 3);  // its rank 0 does more work by design
  make_slow(report.runs[0], 0, Part::optimizer, 0.1);
  CHECK_THAT(report_text(report), !ContainsSubstring("kept all others waiting"));
}

TEST_CASE("the warning of a slow worker names each arm once, by the seed with the longest wait") {
  Report report = made_up_workers("ring", 2);
  report.runs.push_back(made_up_workers("ps", 2).runs[0]);
  for (const std::uint64_t seed : {2, 3}) {
    report.runs.push_back(report.runs[0]);
    report.runs.back().seed = seed;
    make_slow(report.runs.back(), 1, Part::forward, 0.1 * static_cast<double>(seed));
  }
  make_slow(report.runs[1], 0, Part::data, 0.1);
  CHECK_THAT(
      report_text(report),
      ContainsSubstring("(ps, seed 1: rank 0, whose data took 110.0 ms, the others' 10.0 ms on "
                        "average; ring, seed 3: rank 1, whose forward took 360.0 ms, the others' "
                        "60.0 ms on average)"));
}

TEST_CASE("the loss of the first iteration shows whether PyTorch trained the same as kolo") {
  Report report = made_up_report();
  report.runs.insert(report.runs.begin(), made_up_run("torch-ddp", 1, 0));  // in any order
  report.runs[0].program = "torch 9";
  CHECK_THAT(
      report_text(report),
      ContainsSubstring("PyTorch began with the same weights and samples: the loss of the "
                        "first iteration differs by at most 0 % between kolo and torch-ddp"));
  report.runs[0].step_losses[0] = 3.3;
  CHECK_THAT(report_text(report), ContainsSubstring("differs by 10 % between kolo and torch-ddp"));
  report.runs.resize(1);
  CHECK_THAT(report_text(report), !ContainsSubstring("the loss of the first iteration"));
}

TEST_CASE("over several seeds the accuracies of kolo and PyTorch are compared") {
  Report report = made_up_report();
  report.runs = {made_up_run("ring", 1, 0), made_up_run("torch-ddp", 1, 0),
                 made_up_run("ring", 2, 0), made_up_run("torch-ddp", 2, 0)};
  for (const std::size_t i : {1U, 3U}) report.runs[i].program = "torch 9";
  CHECK_THAT(report_text(report),
             ContainsSubstring("Test accuracy over 2 seeds: ring 50.00 to 50.00 %, torch-ddp 50.00 "
                               "to 50.00 %. The ranges of kolo and PyTorch overlap."));
  for (const std::size_t i : {1U, 3U}) report.runs[i].epochs[0].test_accuracy = 0.6;
  CHECK_THAT(report_text(report), ContainsSubstring("PyTorch do not overlap"));
}

TEST_CASE("a report of PyTorch alone claims nothing about bytes") {
  Report report = made_up_report();
  CHECK_THAT(report_text(report), ContainsSubstring("the bytes"));
  for (RunRecord& run : report.runs) run.program = "torch 9";
  CHECK_THAT(report_text(report), !ContainsSubstring("Every rank moved the bytes") &&
                                      !ContainsSubstring("the bytes moved differ"));
}
