// Arms of kolo-train that train in PyTorch, with a stand-in for the interpreter: test/torch.sh runs
// them with torch.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

using namespace kolo::test;

namespace {

namespace fs = std::filesystem;

// Program that checks its files, and reports results like an arm of PyTorch. The variable
// FIRST_LOSS is the loss that it reports for each iteration.
constexpr const char* kStandIn = R"(#!/usr/bin/python3
import json, os, struct, sys
from pathlib import Path
if sys.argv[2:3] == ["--check"]:
    sys.exit(0)
_, script, folder, arm, seed, events, turns = sys.argv
folder = Path(folder) / ("seed-" + seed)
setup = json.loads((folder / "setup.json").read_text())

def shapes(name):
    text = (folder / name).read_bytes()
    header = json.loads(text[8:8 + struct.unpack("<Q", text[:8])[0]])
    return {key: entry["shape"] for key, entry in header.items() if key != "__metadata__"}

assert shapes("data.safetensors") == {
    "train/images": [101, 3, 32, 32], "train/labels": [101], "test/images": [33, 3, 32, 32],
    "test/labels": [33], "order": [2, 101], "learning_rates": [8]}, shapes("data.safetensors")
assert shapes("weights.safetensors")["conv1.weight"] == [16, 3, 3, 3]
assert setup["optimizer"]["kind"] == "sgd", setup
assert setup["global_batch"] == 32 and setup["iterations"] == 8, setup
assert int(os.environ["WORLD_SIZE"]) == (3 if arm == "torch-ps" else 2)
if os.environ["RANK"] != "0":
    sys.exit(0)
epochs = [{"epoch": n, "iterations": 4 * n, "train_loss": 2.0, "train_accuracy": 0.1,
           "is_evaluated": True, "test_loss": 2.0, "test_accuracy": 0.5, "test_note": "",
           "training_seconds": 1.0 * n, "learning_rate": 0.01} for n in (1, 2)]
numbers = """images_per_second step_seconds forward_median exposed_in_backward
    in_flight waiting_for_stages bytes_sent bytes_received formula_sent
    formula_received first_full hops last_bytes last_hops busy_cores peak_mib
    optimizer_mib"""
rank = {**dict.fromkeys(numbers.split(), 1.0), "parts": [0.1] * 6, "is_worker": True}
zeros = """servers stages micro_batches allowed_byte_difference gradients_applied gradients_dropped
    updates_clipped updates_skipped evaluation_seconds
    checking_seconds"""
record = {
    **dict.fromkeys(zeros.split(), 0), "arm": arm, "program": "torch 9", "seed": int(seed),
    "formula": "", "difference": "", "terms": setup["terms"], "transport": "gloo", "workers": 2,
    "classes": 10, "counted_iterations": 3, "epochs": epochs,
    "ranks": [{**rank, "rank": n} for n in range(2)], "step_seconds": [1.0] * 8,
    "step_losses": [float(os.environ["FIRST_LOSS"])] * 8, "layers": [], "timeline": [],
    "staleness": [],
    "final_hash": "",
    "replica_checks": 2, "training_seconds": 2, "total_seconds": 2,
    "predicted_step_seconds": -1, "predicted_exposed": -1}
os.write(int(events), (json.dumps({"finished": record}) + "\n").encode())
)";

std::string stand_in(const Folder& folder, const std::string& text = kStandIn) {
  const fs::path file = folder.path / "python";
  std::ofstream(file) << text;
  fs::permissions(file, fs::perms::owner_all);
  return file.string();
}

Start versus(const Folder& folder, Words words, const std::string& first_loss) {
  words.insert(words.begin(), "versus");
  words.push_back("--python=" + stand_in(folder));
  Start start = folder.start(small(std::move(words)));
  start.variables["FIRST_LOSS"] = first_loss;
  return start;
}

}  // namespace

TEST_CASE("versus gives PyTorch the initial state of kolo, and reports the arms of both") {
  const Folder folder;
  const auto result =
      run_program(versus(folder, {"--strategies=ring,torch-ddp,torch-ps", "--report=out"}, "7"));
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.output, ContainsSubstring("WARNING: the loss of the first iteration, before "
                                              "any update, differs by "));
  CHECK_THAT(result.output, ContainsSubstring("between kolo and torch-ddp, torch-ps"));
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"));
  REQUIRE(report["runs"].size() == 3);
  CHECK(report["runs"][0]["program"] == "kolo");
  CHECK(report["runs"][1]["program"] == "torch 9");
  const std::string text = text_of(folder.path / "out/report.md");
  CHECK_THAT(text, ContainsSubstring("| trained by | kolo | torch 9 | torch 9 |"));
  CHECK_THAT(text, ContainsSubstring("| MiB sent per iteration, each worker | 0.0"));
  CHECK_THAT(text, ContainsSubstring(" | - | - |"));
  CHECK(names_in(folder.temporary()).empty());

  const double first = report["runs"][0]["step_losses"][0];
  const auto equal = run_program(
      versus(folder, {"--strategies=ring,torch-ddp", "--no-report"}, nlohmann::json(first).dump()));
  CHECK(equal.exit_code == 0);
  CHECK_THAT(equal.output, ContainsSubstring("PyTorch began with the same weights and samples"));
}

TEST_CASE("an arm of PyTorch that cannot run is refused before anything is started") {
  const Folder folder;
  const auto refusal = [&](const Words& words) {
    Words all = small({"versus"});
    all.insert(all.end(), words.begin(), words.end());
    const auto result = run_program(folder.start(all));
    INFO(result.output);
    CHECK(result.exit_code == 2);
    CHECK_FALSE(fs::exists(folder.path / "report-versus"));
    CHECK(names_in(folder.temporary()).empty());
    return result.output;
  };
  CHECK_THAT(refusal({"--python=./missing"}),
             ContainsSubstring("torch-ddp: there is no program ./missing"));
  CHECK_THAT(refusal({"--python=false"}), ContainsSubstring("torch-ddp: false failed"));
  const std::string without =
      stand_in(folder, "#!/bin/sh\necho 'this python has no torch'\nexit 1\n");
  CHECK_THAT(refusal({"--python=" + without}),
             ContainsSubstring("torch-ddp: this python has no torch"));
  CHECK_THAT(refusal({"--train-size=97", "--python=true"}),
             ContainsSubstring("with 97 samples the last iteration of an epoch has 1 sample"));
  for (const char* const flag :
       {"--augment=crop", "--optimizer=lars", "--shape=1Gbit,1ms", "--straggle=rank=0,factor=2"})
    CHECK_THAT(refusal({flag}), ContainsSubstring("torch-ddp trains in PyTorch, where --"));
  const auto train = run_program({"train", "--strategies=torch-ddp"}, folder.text());
  CHECK(train.exit_code == 2);
  CHECK_THAT(train.output, ContainsSubstring("train runs an arm of kolo, not torch-ddp"));
  const auto unused = run_program({"compare", "--python=python3", "--no-report"}, folder.text());
  CHECK_THAT(unused.output, ContainsSubstring("--python: none of the arms (ring, ps) uses it"));
  for (const char* const flag : {"--transport=shm", "--hash-every=3", "--loader-threads=2"}) {
    const auto of_kolo =
        run_program({"compare", "--strategies=torch-ddp", flag, "--no-report"}, folder.text());
    CHECK(of_kolo.exit_code == 2);
    CHECK_THAT(of_kolo.output, ContainsSubstring("none of the arms (torch-ddp) uses it"));
  }
}

TEST_CASE("a failed arm of PyTorch ends with its reason, and leaves nothing") {
  const Folder folder;
  const std::string python = stand_in(folder,
                                      "#!/bin/sh\ncase \"$2\" in --check) exit 0 ;; esac\n"
                                      "echo \"$3, rank $RANK: out of paper\" >&2\nexit 1\n");
  Program program(folder.start(
      small({"versus", "--strategies=ring,torch-ddp", "--report=out", "--python=" + python})));
  CHECK(program.wait() == 1);
  CHECK_THAT(program.output(), ContainsSubstring("torch-ddp, rank 0: out of paper"));
  check_nothing_is_left(program, folder);
}

TEST_CASE("an interrupt during the check of the interpreter ends versus") {
  const Folder folder;
  const std::string python =
      stand_in(folder, "#!/bin/sh\necho the check hangs >&2\nexec sleep 1000\n");
  Program program(folder.start(small({"versus", "--python=" + python})));
  program.wait_for("the check hangs");
  program.signal(SIGINT);
  CHECK(program.wait() == 128 + SIGINT);
  check_nothing_is_left(program, folder);
}

TEST_CASE("versus refuses a folder for temporary files that does not exist") {
  const Folder folder;
  Start start = versus(folder, {"--strategies=ring,torch-ddp"}, "1");
  start.variables["TMPDIR"] = (folder.path / "missing").string();
  const auto result = run_program(start);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.output, ContainsSubstring("TMPDIR: not a folder that can be used (No such"));
  CHECK_FALSE(fs::exists(folder.path / "report-versus"));
}
