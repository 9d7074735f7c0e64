// kolo-train's experiments of several points: sweep, scale, scale-data and ladder.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

// An experiment with the small model, a few iterations per point.
Words few_steps(Words words) {
  for (const char* word : {"--model=small", "--train-size=256", "--test-size=33", "--steps=4",
                           "--skip-steps=1", "--timeout=30"})
    words.emplace_back(word);
  return words;
}

std::string contents_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

nlohmann::json report_in(const Folder& folder) {
  return nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"));
}

std::ptrdiff_t points_in(const Folder& folder) {
  const std::string text = contents_of(folder.path / "out/points.jsonl");
  return std::count(text.begin(), text.end(), '\n');
}

std::string run_well(const Words& words, const Folder& folder) {
  const ProgramResult ended = run_program(words, folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  return ended.output;
}

}  // namespace

TEST_CASE("sweep measures each batch size, picks the best, and goes on where it ended") {
  const Folder folder;
  const Words first = few_steps({"sweep", "--batch-sizes=16,8", "--report=out"});
  CHECK_THAT(run_well(first, folder), ContainsSubstring("The fastest is batch size "));
  const std::string points = contents_of(folder.path / "out/points.jsonl");
  CHECK(points_in(folder) == 2);
  CHECK(report_in(folder)["rows"].size() == 2);
  CHECK(report_in(folder)["rows"][0]["batch_size"] == 8);
  CHECK(report_in(folder)["rows"][0]["peak_mib"].get<double>() > 1);

  // A killed process leaves an incomplete line.
  std::ofstream(folder.path / "out/points.jsonl", std::ios::app) << "{\"point\": \"batch 3";
  const Words second = few_steps({"sweep", "--batch-sizes=8,16,32", "--report=out"});
  const std::string output = run_well(second, folder);
  CHECK_THAT(output, ContainsSubstring("keeps the finished points there and measures the others"));
  CHECK_THAT(output, ContainsSubstring("batch 32 (run 1 of 1)"));
  CHECK_THAT(output, !ContainsSubstring("batch 16 (run"));
  CHECK(contents_of(folder.path / "out/points.jsonl").starts_with(points));
  CHECK(points_in(folder) == 3);
  CHECK(report_in(folder)["rows"].size() == 3);
  CHECK_THAT(contents_of(folder.path / "out/report.md"), ContainsSubstring("| batch size |"));

  Words other = few_steps({"sweep", "--batch-sizes=8", "--report=out"});
  other.emplace_back("--lr=0.5");
  const ProgramResult refused = run_program(other, folder.text());
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.output, ContainsSubstring("made with other flags: --lr was '0.01' and is "
                                               "'0.5'; choose another --report folder"));
  CHECK(points_in(folder) == 3);
}

// A sanitizer reserves terabytes of addresses, which no limit allows.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("sweep ends where memory runs out, which is a result") {
  const Folder folder;
  Start start = folder.start({"sweep", "--batch-sizes=2,4096,8192", "--model=cnn", "--steps=1",
                              "--train-size=8192", "--test-size=2", "--skip-steps=0", "--threads=1",
                              "--report=out"});
  start.prepare = [] {
    const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};
    return setrlimit(RLIMIT_AS, &limit) == 0;
  };
  const ProgramResult ended = run_program(start);
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output,
             ContainsSubstring("It ended at batch size 4096 of 8192: memory ran out."));
  CHECK(points_in(folder) == 2);
  CHECK(report_in(folder)["rows"].size() == 2);
}
#endif

TEST_CASE("sweep takes a process that the system kills for one without memory") {
  const Folder folder;
  Program program(folder.start({"sweep", "--batch-sizes=1", "--model=small", "--no-report",
                                "--train-size=4000000", "--epochs=1"}));
  program.wait_for("training, epoch 1");
  kill(program.rank_process(0), SIGKILL);
  CHECK(program.wait() == 0);
  CHECK_THAT(program.output(), ContainsSubstring("probably because memory ran out"));
}

TEST_CASE("an interrupted experiment keeps its finished points, and says that it is incomplete") {
  const Folder folder;
  Words words = few_steps({"scale-data", "--train-size=64,4000000", "--epochs=1",
                           "--strategies=ring", "--batch-size=1", "--report=out"});
  std::erase(words, "--steps=4");
  std::erase(words, "--train-size=256");
  Program program(folder.start(words));
  program.wait_for("4000000 samples (run 2 of 2): training, epoch 1");
  program.signal(SIGINT);
  CHECK(program.wait() == 128 + SIGINT);
  CHECK_THAT(program.output(), ContainsSubstring("INCOMPLETE: 1 of 2 points ran: ring, 4000000 "
                                                 "samples: interrupted."));
  CHECK(points_in(folder) == 1);
  CHECK(report_in(folder)["rows"].size() == 1);
}

TEST_CASE("a full disk ends an experiment, whose table is still printed") {
  const Folder folder;
  Start start = folder.start(few_steps({"sweep", "--batch-sizes=8,16", "--report=out"}));
  start.prepare = [] {
    const rlimit limit{1000, 1000};  // of a file; a process of a sweep needs none
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
  };
  const ProgramResult ended = run_program(start);
  INFO(ended.output);
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.output, ContainsSubstring("INCOMPLETE: 1 of 2 points ran: out/points.jsonl: the "
                                             "point batch 8 cannot be stored: File too large"));
  CHECK_THAT(ended.output, ContainsSubstring("The fastest is batch size 8"));
  CHECK(fs::file_size(folder.path / "out/points.jsonl") == 0);
}

TEST_CASE("scale takes the same threads at every point, and names points without enough cores") {
  const Folder folder;
  const std::string mode = GENERATE("weak", "strong");
  const std::string cores = std::to_string(std::thread::hardware_concurrency());
  const Words words =
      few_steps({"scale", "--mode=" + mode, "--ranks=1,2", "--strategies=ring,ps", "--report=out",
                 mode == "weak" ? "--threads=" + cores : "--threads=0"});
  std::string output = run_well(words, folder);
  CHECK_THAT(output, ContainsSubstring(mode == "weak" ? "each worker takes 64 samples"
                                                      : "together take 128 samples"));
  CHECK_THAT(output, ContainsSubstring("WARNING: more busy threads than cores"));
  CHECK_THAT(output, ContainsSubstring("threads on " + cores + " core"));
  const nlohmann::json report = report_in(folder);
  REQUIRE(report["rows"].size() == 4);
  std::set<std::string> computing, batches;
  for (const auto& row : report["rows"]) {
    const double ideal = row["ideal_images_per_second"];
    CHECK(row["efficiency_percent"].get<double>() > 0);
    if (row["ranks"] == 1) CHECK(row["images_per_second"] == ideal);
  }
  for (const auto& point : report["points"]) {
    for (const auto& run : point["runs"]) {
      computing.insert(run["terms"]["compute"].get<std::string>());
      batches.insert(run["terms"]["batch"].get<std::string>().substr(0, 3));
    }
  }
  CHECK(computing.size() == 1);
  CHECK(batches ==
        (mode == "weak" ? std::set<std::string>{"64 ", "128"} : std::set<std::string>{"128"}));
}

TEST_CASE("scale-data reports the time of an epoch and to a target accuracy") {
  const Folder folder;
  Words words = small({"scale-data", "--train-size=32,64", "--strategies=ring,ps",
                       "--target-accuracy=0.00001", "--report=out"});
  std::erase(words, "--train-size=101");
  CHECK_THAT(run_well(words, folder), ContainsSubstring("was reached in 4 of 4 rows"));
  const nlohmann::json report = report_in(folder);
  for (const auto& row : report["rows"]) {
    CHECK(row["target_seconds"].get<double>() > 0);
    double parts = 0;
    for (const auto& [key, value] : row.items())
      if (key.starts_with("part_")) parts += value.get<double>();
    CHECK(parts == Approx(row["epoch_seconds"].get<double>()).epsilon(0.01));
  }
}

TEST_CASE("ladder measures every rung of sync=") {
  const Folder folder;
  run_well(few_steps({"ladder", "--report=out"}), folder);
  std::set<std::string> rungs;
  const nlohmann::json report = report_in(folder);
  for (const auto& row : report["rows"]) {
    rungs.insert(row["arm"].get<std::string>());
    CHECK(row["step_ms"].get<double>() >= row["exposed_ms"].get<double>());
  }
  CHECK(rungs ==
        std::set<std::string>{"naive", "flat", "overlap", "bucketed", "prioritized", "fusion"});
}

TEST_CASE("an experiment refuses flags that it sets itself, wrong lists, and a strange file") {
  const Folder folder;
  const auto refuses = [&folder](const Words& words, const std::string& part) {
    const ProgramResult ended = run_program(words, folder.text());
    INFO(part);
    CHECK(ended.exit_code == 2);
    CHECK_THAT(ended.output, ContainsSubstring(part));
  };
  refuses({"sweep", "--batch-size", "3"}, "sweep sets --batch-size itself; give --batch-sizes");
  refuses({"sweep", "--batch-sizes", "3,x"}, "expected whole numbers from 1");
  refuses({"sweep", "--batch-sizes", ""}, "expected whole numbers from 1");
  refuses({"sweep", "--batch-sizes=8192"}, "an iteration takes 8192 samples");
  refuses({"scale", "--mode", "medium"}, "expected one of weak, strong");
  refuses({"scale", "--mode", "strong", "--batch-size=3"}, "does not use --batch-size");
  refuses({"scale", "--mode=weak", "--global_batch", "64"}, "does not use --global-batch");
  refuses({"sweep", "--n_gpus=2"}, "sweep sets --n-gpus itself");
  refuses({"scale", "--config=none.ini"}, "--config none.ini: it cannot be read");
  refuses({"scale", "--config=tmp"}, "--config tmp: it cannot be read");
  std::ofstream(folder.path / "tmp/a.ini") << "mode = strong\nbatch_size = 3\n";
  refuses({"scale", "--config", "tmp/a.ini"}, "--mode strong does not use --batch-size");
  std::ofstream(folder.path / "tmp/b.ini") << "[more]\nranks = 1\n";
  refuses({"scale", "--config=tmp/b.ini"}, "--config tmp/b.ini: unknown key '[more]'");
  refuses({"scale", "--strategies", "ps:split"}, "split needs at least 3 workers");
  refuses({"scale-data", "--target-accuracy", "90"}, "--target-accuracy: expected a number");
  refuses({"scale-data", "--steps", "9"}, "give --epochs");
  refuses({"ladder", "--strategies=ring"}, "it measures all rungs of a ring");
  refuses({"ladder", "--stratgies=ring"}, "did you mean --strategies?");
  refuses({"scale", "--save=a"}, "scale does not use --save");
  refuses({"sweep", "--profile"}, "sweep does not use --profile");
  refuses({"sweep", "--report=a", "--no-report"}, "cannot be combined");
  fs::create_directory(folder.path / "odd");
  std::ofstream(folder.path / "odd/points.jsonl") << "{}\n";
  refuses({"sweep", "--report=odd"}, "line 1 is not the result of a point");
  fs::create_directories(folder.path / "tmp/held/points.jsonl");
  refuses({"sweep", "--report=tmp/held"}, "tmp/held/points.jsonl: it is a folder; choose another");
  CHECK(names_in(folder.path) == std::set<std::string>{"odd", "tmp"});
}
