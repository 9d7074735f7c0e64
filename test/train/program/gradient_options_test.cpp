// Gradient options and the timeline of kolo-train.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

using namespace kolo::test;

nlohmann::json json_in(const Folder& folder, const std::string& name) {
  return nlohmann::json::parse(std::ifstream(folder.path / name));
}

// Runs in the folder; the report is in its subfolder "out".
ProgramResult run(const Folder& folder, const Words& words) {
  Words all = small({words.front(), "--report", "out"});
  all.insert(all.end(), words.begin() + 1, words.end());
  return run_program(all, folder.text());
}

// The run ends before it starts, with one line that contains `message`, and writes nothing.
void refuses(const Words& words, const std::string& message) {
  const Folder folder;
  const ProgramResult ended = run(folder, words);
  CHECK(ended.exit_code == 2);
  CHECK(std::ranges::count(ended.output, '\n') == 1);
  CHECK_THAT(ended.output, ContainsSubstring(message));
  CHECK_FALSE(std::filesystem::exists(folder.path / "out"));
}

// Whether two spans of a track are always apart, or one is within the other.
bool are_nested(std::vector<std::pair<std::int64_t, std::int64_t>> spans) {
  std::ranges::sort(spans, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<std::int64_t> ends;  // of the spans around the current one
  for (const auto& [begin, end] : spans) {
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    if (!ends.empty() && ends.back() < end) return false;
    ends.push_back(end);
  }
  return true;
}

double last_loss(const nlohmann::json& run) { return run["epochs"].back()["train_loss"]; }

}  // namespace

TEST_CASE("synchronous arms run with gradient options, and move the formula's bytes") {
  const Folder folder;
  const Words clipped{"--compress=float16", "--clip-norm=0.5"};
  const Words together{"--micro-batch=4", "--sync-batch-norm"};
  const Words options = GENERATE_COPY(from_range(
      all_or_few<Words>({{"--compress=bfloat16"}, clipped, together}, {clipped, together})));
  Words words{"compare", "--strategies=ring,tree,ps,sharded,dataparallel,auto:sync=fusion",
              "--ranks=3"};
  words.insert(words.end(), options.begin(), options.end());
  const ProgramResult ended = run(folder, words);
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const nlohmann::json report = json_in(folder, "out/report.json");
  REQUIRE(report["runs"].size() == 6);
  for (const auto& one : report["runs"]) {
    INFO(one["arm"]);
    CHECK(one["bytes_match_formula"] == true);
    CHECK(std::abs(last_loss(one) - last_loss(report["runs"][0])) < 0.05);
  }
  if (options.size() == 2 && options[1] == "--clip-norm=0.5") {
    CHECK(report["runs"][0]["updates_clipped"].get<double>() > 0);
    CHECK_THAT(ended.output, ContainsSubstring("updates with clipped gradients"));
    CHECK_THAT(ended.output, ContainsSubstring("updates skipped, overflow of float16"));
  }
}

TEST_CASE("three workers with --sync-batch-norm get nearly the loss of one worker") {
  const Folder folder;
  double bytes = 0, together = 0;  // sent by a worker in an iteration
  const auto losses = [&](const Words& more) {
    Words words{"train", "--global-batch=12", "--ranks=3", "--train-size=101"};
    words.insert(words.end(), more.begin(), more.end());
    Words all = small({words.front(), "--report", "out"});
    std::erase(all, "--batch-size=16");
    all.insert(all.end(), words.begin() + 1, words.end());
    const ProgramResult ended = run_program(all, folder.text());
    INFO(ended.output);
    REQUIRE(ended.exit_code == 0);
    const nlohmann::json run = json_in(folder, "out/report.json")["runs"][0];
    CHECK(run["bytes_match_formula"] == true);
    bytes = run["ranks"][0]["bytes_sent"];
    return std::pair(last_loss(run), run["epochs"].back()["test_loss"].get<double>());
  };
  const auto one = losses({"--ranks=1"});
  for (const Words& how : {Words{"--sync-batch-norm"}, {"--sync-batch-norm", "--strategies=ps"}}) {
    const auto several = losses(how);
    if (how.size() == 1) together = bytes;
    CHECK(std::abs(several.first - one.first) < 2e-3);
    CHECK(std::abs(several.second - one.second) < 2e-3);
  }
  CHECK(std::abs(losses({}).first - one.first) > 5e-3);
  CHECK(together > bytes);  // the sums of batch normalisation count
  const auto single = losses({"--sync-batch-norm", "--global-batch=3", "--steps=2"});
  CHECK(std::abs(single.first - losses({"--ranks=1", "--global-batch=3", "--steps=2"}).first) <
        2e-3);
}

TEST_CASE("with --sync-batch-norm a run resumes before a batch in which a worker has no samples") {
  const Folder folder;
  const Words how{"train", "--sync-batch-norm", "--train-size=33", "--save=saved"};
  Words first = how, rest = how;
  first.emplace_back("--steps=1");
  rest.insert(rest.end(), {"--resume=saved", "--epochs=1"});
  for (const Words& words : {first, rest}) {
    const ProgramResult ended = run(folder, words);
    INFO(ended.output);
    REQUIRE(ended.exit_code == 0);
  }
}

TEST_CASE("the timeline shows all ranks, the operations of a layer, and the exchange of buckets") {
  const Folder folder;
  const ProgramResult ended =
      run(folder, {"compare", "--strategies=ring,ps,ring:sync=prioritized,ps:async,local-sgd:2",
                   "--timeline", "--bucket-bytes=4096", "--first-bucket-bytes=4096"});
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  CHECK_FALSE(json_in(folder, "out/report.json")["runs"][0].contains("timeline"));
  for (const std::string arm : {"ring", "ps", "ring-sync=prioritized", "ps-async", "local-sgd-2"}) {
    INFO(arm);
    const nlohmann::json file = json_in(folder, "out/timeline-" + arm + ".json");
    std::map<int, std::set<std::string>> names;  // of each rank
    std::map<int, int> process_of;  // thread; a thread's number is that of one process only
    std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> spans;
    std::map<int, std::pair<double, double>> whole;
    for (const auto& event : file["traceEvents"]) {
      if (event["ph"] != "X") continue;
      CHECK(event["dur"].get<double>() >= 0);
      CHECK(event["ts"].get<double>() >= 0);
      const auto begin = std::llround(event["ts"].get<double>() * 1000);  // nanoseconds
      const int process = event["pid"], rank = process / 10'000 - 1;
      CHECK(process_of.emplace(event["tid"], process).first->second == process);
      spans[event["tid"]].emplace_back(begin,
                                       begin + std::llround(event["dur"].get<double>() * 1000));
      const std::string name = event["name"];
      names[rank].insert(name);
      if (name == "iteration 7")
        whole[rank] = {event["ts"], event["ts"].get<double>() + event["dur"].get<double>()};
    }
    for (auto& [track, all] : spans) CHECK(are_nested(all));
    for (const int rank : {0, 1}) {
      INFO("rank " << rank);
      CHECK(names[rank].contains("data"));
      CHECK(names[rank].contains("conv1, conv2d"));
      CHECK(names[rank].contains("conv1, backward of conv2d"));
      CHECK(names[rank].contains("applied"));
      CHECK(names[rank].contains("exchanged"));
      CHECK(names[rank].contains("iteration 7"));
    }
    // Both ranks are in the same iteration at some time, by one clock.
    if (arm == "ring" || arm == "ps")  // in the others a rank may be an iteration ahead
      CHECK(std::max(whole[0].first, whole[1].first) < std::min(whole[0].second, whole[1].second));
    if (arm == "ps") CHECK(names[2].contains("iteration 7"));
  }
}

TEST_CASE("an option that an arm cannot use is refused by name before training starts") {
  refuses({"compare", "--strategies=ring,ps:optimizer=server", "--compress=bfloat16"},
          "--compress: the arm 'ps:optimizer=server' cannot use this option, because it gets "
          "parameters from its "
          "servers; take optimizer=worker");
  refuses(
      {"compare", "--strategies=tree", "--compress=topk:0.01"},
      "the arm 'tree' cannot use this option, because it has no sparse exchange; ring, auto and "
      "pipelines have one");
  refuses({"compare", "--strategies=ring:sync=fusion", "--compress=topk:0.01"},
          "copies gradients into dense buffers");
  refuses({"compare", "--strategies=local-sgd:2", "--compress=bfloat16"},
          "because it sends parameters, no gradients");
  refuses({"compare", "--strategies=ps:async", "--clip-norm=1"},
          "--clip-norm: the arm 'ps:async' cannot use this option, because it updates "
          "each part at its server, before the others");
  refuses({"compare", "--strategies=ring:sync=prioritized", "--compress=float16"},
          "--compress float16: the arm 'ring:sync=prioritized' cannot use this option");
  refuses({"compare", "--strategies=ps:ssp=2", "--sync-batch-norm"},
          "--sync-batch-norm: the arm 'ps:ssp=2' cannot use this option");
  refuses({"compare", "--micro-batch=5"},
          "--micro-batch 5: 32 samples cannot be divided into micro-batches of that size for 2 "
          "workers of 'ring'; change --micro-batch or --batch-size");
  refuses({"compare", "--compress=int8"}, "expected none, bfloat16, float16 or topk:R");
  refuses({"compare", "--clip-norm=0"}, "--clip-norm");
  refuses({"compare", "--model=mlp", "--sync-batch-norm"}, "has no batch normalisation");
  refuses({"compare", "--strategies=ring,torch-ddp", "--compress=bfloat16"},
          "torch-ddp trains in PyTorch, where --compress has no effect");
}

TEST_CASE("a timeline without a folder for its file is refused") {
  const Folder folder;
  const ProgramResult ended = run_program({"train", "--timeline"}, folder.text());
  CHECK(ended.exit_code == 2);
  CHECK_THAT(ended.output, ContainsSubstring("--timeline has no effect without a folder"));
}

TEST_CASE("float16 skips the updates that overflow, and the bytes match the formula") {
  const Folder folder;
  const ProgramResult ended =
      run(folder, {"compare", "--strategies=ring,sharded", "--model=resnet18", "--train-size=64",
                   "--test-size=4", "--steps=2", "--compress=float16"});
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const nlohmann::json report = json_in(folder, "out/report.json");
  for (const auto& one : report["runs"]) {
    INFO(one["arm"]);
    CHECK(one["updates_skipped"].get<double>() > 0);
    CHECK(one["bytes_match_formula"] == true);
  }
}

TEST_CASE("a run whose loss grows with top_k gets a warning that names --compress") {
  const Folder folder;
  const ProgramResult ended =
      run(folder, {"train", "--train-size=2048", "--batch-size=64", "--lr=0.1", "--warmup-epochs=0",
                   "--compress=topk:0.01"});
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("The training has diverged") &&
                               ContainsSubstring("or compare with --compress none"));
}

TEST_CASE("a run that diverges with top_k ends with exit code 1 and says so") {
  const Folder folder;
  const ProgramResult ended = run(folder, {"train", "--compress=topk:0.01", "--lr=1e6",
                                           "--lr-schedule=constant", "--warmup-epochs=0"});
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.output, ContainsSubstring("training has diverged"));
}

// In the last batch one replica has two micro-batches, the other has one.
TEST_CASE("pipelines end with the bits of data-parallel workers with the same micro-batches") {
  const Folder folder;
  const Words both{"--compress=float16", "--sync-batch-norm"}, clipped{"--clip-norm=0.5"};
  const Words options = GENERATE_COPY(from_range(all_or_few<Words>(
      {{}, {"--sync-batch-norm"}, {"--compress=bfloat16"}, both, clipped, {"--compress=topk:0.5"}},
      {both, clipped})));
  const auto hash_and_loss = [&](Words words) {
    words.insert(words.end(), {"--micro-batch=4", "--train-size=105"});
    words.insert(words.end(), options.begin(), options.end());
    const ProgramResult ended = run(folder, words);
    INFO(ended.output);
    REQUIRE(ended.exit_code == 0);
    const nlohmann::json one = json_in(folder, "out/report.json")["runs"][0];
    CHECK(one["bytes_match_formula"] == true);
    return std::pair(one["final_hash"].get<std::string>(),
                     one["epochs"].back()["test_loss"].get<double>());
  };
  const auto ring = hash_and_loss({"train", "--ranks=2"});
  const auto pipelines =
      hash_and_loss({"train", "--ranks=4", "--batch-size=8", "--strategies=pipeline:2"});
  const std::string option = options.empty() ? "none" : options.front();
  INFO(option);
  if (option ==
      "--compress=topk:0.5") {  // top-k chooses in each bucket, and stages have other buckets
    CHECK(std::abs(pipelines.second - ring.second) < 0.05);
  } else if (option == "--clip-norm=0.5") {  // its squares are summed in another order
    CHECK(std::abs(pipelines.second - ring.second) < 1e-3);
  } else {
    CHECK(pipelines.first == ring.first);
    CHECK(std::abs(pipelines.second - ring.second) < 1e-6);  // sums over other samples
  }
}

TEST_CASE("one table compares data and model parallelism, with memory, bytes and bubble") {
  const Folder folder;
  const ProgramResult ended =
      run(folder, {"compare", "--strategies=ring,pipeline:2", "--micro-batch=4", "--timeline"});
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("bubble, %"));
  CHECK_THAT(ended.output, ContainsSubstring("peak memory of each stage, MiB"));
  CHECK_THAT(ended.output, ContainsSubstring("forward and backward of each stage, ms"));
  CHECK_THAT(ended.output, ContainsSubstring("out/timeline-pipeline-2.json"));
  CHECK_THAT(ended.output, ContainsSubstring("moved the bytes of its strategy's formula"));
  CHECK(json_in(folder, "out/report.json")["runs"][1]["replica_checks"] == 0);  // one replica
  const std::string timeline = json_in(folder, "out/timeline-pipeline-2.json").dump();
  CHECK_THAT(timeline, ContainsSubstring("wait for input 3"));
  CHECK_THAT(timeline, ContainsSubstring("backward of micro-batch 3"));
}

TEST_CASE("an impossible pipeline is refused with one message") {
  refuses({"train", "--ranks=3", "--strategies=pipeline:2", "--micro-batch=4"},
          "3 workers cannot be divided into pipelines of 2 stages; set --ranks to a multiple of 2");
  refuses({"train", "--strategies=pipeline:2"},
          "'pipeline:2' needs micro-batches, about 4 times as many as stages; add --micro-batch 4");
  refuses({"train", "--strategies=pipeline:2", "--batch-size=13"}, "add --micro-batch 1");
  refuses({"train", "--ranks=4", "--strategies=pipeline:2", "--batch-size=4", "--micro-batch=16"},
          "16 samples cannot be divided into micro-batches of that size for 2 pipelines of "
          "'pipeline:2'");
  const Folder folder;  // half of the micro-batch comes from each stage's share
  CHECK(run(folder, {"train", "--ranks=4", "--strategies=pipeline:2", "--batch-size=4",
                     "--micro-batch=8", "--steps=1"})
            .exit_code == 0);
  refuses({"train", "--ranks=4", "--strategies=pipeline:4", "--micro-batch=4"},
          "model 'small' has 3 parts, which cannot be divided into 4 stages; take at most 3");
  refuses({"train", "--strategies=pipeline:2", "--micro-batch=4", "--compress=bfloat16"},
          "because it has one replica of the model, so it sends no gradients");
  refuses({"train", "--strategies=pipeline"}, "expected pipeline:S, where S ranks share a model");
}
