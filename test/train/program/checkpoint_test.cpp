// Checkpoints of kolo-train: a resumed run ends with the bits of an uninterrupted one, and whatever
// cannot be resumed is refused before anything starts.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

// A training of `epochs` epochs of 4 iterations.
Words training(Words more, int epochs) {
  Words words{"train",           "--train-size=101", "--test-size=33",
              "--batch-size=16", "--timeout=30",     "--epochs=" + std::to_string(epochs)};
  if (std::ranges::none_of(more, [](auto& word) { return word.starts_with("--model="); }))
    words.emplace_back("--model=small");
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

nlohmann::json run_in(const Folder& folder, const Words& words, const std::string& report) {
  Words all = words;
  all.push_back("--report=" + report);
  const ProgramResult result = run_program(folder.start(all));
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(std::ifstream(folder.path / report / "report.json"))["runs"][0];
}

// The run must be refused with one line that contains `reason`.
void check_refused(const Folder& folder, const Words& words, const std::string& reason) {
  const auto before = names_in(folder.path);
  const ProgramResult result = run_program(folder.start(words));
  INFO(result.output);
  CHECK(result.exit_code == 2);
  CHECK(std::ranges::count(result.output, '\n') == 1);
  CHECK_THAT(result.output, ContainsSubstring(reason));
  CHECK(names_in(folder.path) == before);
}

}  // namespace

TEST_CASE("a resumed run ends with the bits of an uninterrupted one") {
  const Words unsent{"--compress=topk:0.5", "--strategies=pipeline:2", "--ranks=4",
                     "--micro-batch=4", "--batch-size=8"};
  const Words skips{"--compress=float16", "--optimizer=adamw",  // two updates, in the first epoch
                    "--train-size=8", "--batch-size=1"};
  const Words servers{"--strategies=ps:everywhere:optimizer=server", "--ranks=3"};
  const Words apart{"--strategies=local-sgd:3"};
  const Words how =
      GENERATE_COPY(from_range(all_or_few<Words>({{"--strategies=ring"},
                                                  {"--strategies=ps"},
                                                  {"--strategies=ps:optimizer=server"},
                                                  servers,
                                                  apart,
                                                  {"--optimizer=adamw"},
                                                  {"--strategies=sharded", "--ranks=3"},
                                                  {"--strategies=ps:ssp=0", "--optimizer=adamw"},
                                                  {"--optimizer=lars", "--strategies=dataparallel"},
                                                  {"--compress=topk:0.1", "--ranks=3"},
                                                  skips,
                                                  unsent},
                                                 {servers, apart, skips, unsent})));
  const Folder folder;
  Words saving = how, resuming = how;
  saving.insert(saving.end(), {"--save=saved", "--keep=9"});
  resuming.emplace_back("--resume=saved/iteration-00000004.safetensors");
  if (how.size() == 2 && how[1] == "--ranks=3")
    resuming.back() = "--resume=saved/iteration-00000003.safetensors";
  const auto whole = run_in(folder, training(saving, 2), "whole");
  const auto resumed = run_in(folder, training(resuming, 2), "resumed");
  CHECK(resumed["final_hash"] == whole["final_hash"]);
  CHECK(resumed["epochs"].size() == 1);
  CHECK(resumed["epochs"].back()["test_loss"] == whole["epochs"].back()["test_loss"]);
  CHECK(resumed["epochs"].back()["iterations"] == whole["epochs"].back()["iterations"]);
}

TEST_CASE("pipelines and a ring go on from each other's checkpoints with the same bits") {
  const Folder folder;
  const Words ring{"--micro-batch=4", "--save=ring"};
  const Words pipelines{"--micro-batch=4", "--strategies=pipeline:2", "--ranks=4", "--batch-size=8",
                        "--save=pipelines"};
  const auto whole = run_in(folder, training(ring, 2), "whole");
  CHECK(run_in(folder, training(pipelines, 2), "pipelines")["final_hash"] == whole["final_hash"]);
  for (Words resuming : {ring, pipelines}) {
    const std::string other = resuming == ring ? "pipelines" : "ring";
    resuming.back() = "--resume=" + other + "/iteration-00000004.safetensors";
    const auto resumed = run_in(folder, training(resuming, 2), "resumed");
    INFO("from the checkpoint of " << other);
    CHECK(resumed["final_hash"] == whole["final_hash"]);
    const double loss = whole["epochs"].back()["test_loss"];
    CHECK(resumed["epochs"].back()["test_loss"].get<double>() == Approx(loss).epsilon(1e-6));
  }
}

TEST_CASE("a run is resumed with other ranks and another strategy, and keeps batch and seed") {
  const Folder folder;
  const Words basis{"--model=mlp", "--lr-schedule=constant"};
  Words first = basis, second = basis;
  first.insert(first.end(), {"--save=saved", "--seed=7", "--strategies=ps"});
  second.insert(second.end(), {"--resume=saved", "--ranks=1", "--strategies=ring"});
  Words whole = basis;
  whole.emplace_back("--seed=7");
  const auto reference = run_in(folder, training(whole, 3), "whole");
  run_in(folder, training(first, 2), "first");
  Words words = training(second, 3);
  std::erase(words, "--batch-size=16");
  const auto resumed = run_in(folder, words, "resumed");
  CHECK(resumed["terms"]["batch"] == "32 samples over 1 worker");
  CHECK(resumed["epochs"].back()["iterations"] == 12);
  const double loss = reference["epochs"].back()["test_loss"];
  CHECK(resumed["epochs"].back()["test_loss"].get<double>() == Approx(loss).epsilon(1e-3));
}

TEST_CASE("with --keep=2 the last two checkpoints stay, and a longer run warns of its schedule") {
  const Folder folder;
  run_in(folder, training({"--save=saved", "--keep=2", "--ranks=1", "--batch-size=32"}, 4), "r");
  CHECK(names_in(folder.path / "saved") == std::set<std::string>{"iteration-00000012.safetensors",
                                                                 "iteration-00000016.safetensors",
                                                                 "manifest.json"});
  const ProgramResult longer =
      run_program(folder.start(training({"--resume=saved", "--ranks=1", "--batch-size=32"}, 5)));
  CHECK(longer.exit_code == 0);
  CHECK_THAT(longer.output,
             ContainsSubstring("the checkpoint's run has 16 iterations, this run has 20;"));
}

TEST_CASE("a checkpoint that does not fit the run is refused") {
  const Folder folder;
  run_in(folder, training({"--save=saved"}, 1), "r");
  const auto check = [&](Words words, const std::string& reason) {
    check_refused(folder, training(std::move(words), 2), reason);
  };
  const std::string resume = "--resume=saved";
  check({resume, "--model=mlp"}, "of a run with model small, and this run has mlp; change --model");
  check({resume, "--dataset=synthetic:32x32x3:10"}, "with dataset digits, and this run has synth");
  check({resume, "--optimizer=adamw"}, "with optimizer sgd, and this run has adamw");
  check({resume, "--seed=2"}, "with seed 1, and this run has 2; change --seed");
  check({resume, "--batch-size=8"}, "with global_batch 32, and this run has 16");
  check({resume, "--train-size=102"}, "change --train-size");
  check({resume, "--steps=4"}, "4 of the 4 iterations of this run are done; raise --epochs");
  check({resume, "--load=x"}, "--load cannot be combined with --resume");
  check({"--resume=nothing"}, "--resume: nothing: No such file or directory");
  check({"--resume=tmp"}, "tmp: the folder has no checkpoint");
  check({"--load=nothing"}, "--load: nothing: No such file or directory");
  check({"--load=saved/iteration-00000004.safetensors", "--model=mlp"}, "it is of another model");
  check({"--save=saved"}, "it has checkpoints of a run up to iteration 4; go on from them with");
  check({"--save=r/report.json"}, "report.json: the folder cannot be written: Not a directory");
  check({"--save=" + std::string(300, 'n')}, "the folder cannot be written: File name too long");
  fs::create_symlink("nowhere", folder.path / "link");  // which must stay
  check({"--save=link"}, "it is a link to a place that does not exist");
  check({"--report=link"}, "it is a link to a place that does not exist");
  check({"--keep=2"}, "--keep has no effect without --save");
  check({resume, "--seeds=2"}, "for one training; remove --seeds");
  check_refused(folder, {"compare", "--save=x"}, "compare does not expect '--save=x'");
  const std::string good = text_of(folder.path / "saved/iteration-00000004.safetensors");
  std::ofstream(folder.path / "cut", std::ios::binary) << good.substr(0, good.size() - 1);
  check({"--resume=cut"}, "truncated");
  std::ofstream(folder.path / "hostile", std::ios::binary) << std::string(7, '\0') << "\x10{}";
  check({"--resume=hostile"}, "1152921504606846976 bytes");
}

TEST_CASE("weights from a checkpoint begin a new run") {
  const Folder folder;
  run_in(folder, training({"--save=saved"}, 1), "first");
  const auto run =
      run_in(folder, training({"--load=saved/iteration-00000004.safetensors"}, 1), "r");
  CHECK(run["epochs"].back()["iterations"] == 4);
  CHECK_THAT(run["terms"]["initial weights"].get<std::string>(), ContainsSubstring("saved/"));
}

TEST_CASE("a checkpoint that cannot be written leaves the last one as it was") {
  const Folder folder;
  const Words how{"--save=saved", "--ranks=1", "--batch-size=32", "--transport=tcp"};
  run_in(folder, training(how, 1), "first");
  const fs::path last = folder.path / "saved/iteration-00000004.safetensors";
  const std::string before = text_of(last);
  Words words = how;
  words.emplace_back("--resume=saved");
  Start start = folder.start(training(words, 2));
  start.prepare = [] {
    const rlimit limit{60'000, 60'000};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
  };
  const ProgramResult result = run_program(start);
  INFO(result.output);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.output, ContainsSubstring("cannot be written: File too large; the last good "
                                              "checkpoint is saved/iteration-00000004"));
  CHECK(text_of(last) == before);
  CHECK(names_in(folder.path / "saved").size() == 2);
}

TEST_CASE("Ctrl-C ends a run after the iteration with a checkpoint, from which it is resumed") {
  const std::string arm = GENERATE("ring", "local-sgd:8", "ps:optimizer=server");
  const Folder folder;
  Words words = endless_training({"train", "--save=saved", "--strategies=" + arm});
  std::erase(words, "--hash-every=2");
  Program program(folder.start(words));
  program.wait_for(kTraining);
  program.signal(SIGINT);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + SIGINT);
  CHECK_THAT(program.output(), ContainsSubstring("go on with --resume saved"));
  check_nothing_is_left(program, folder);
  const auto names = names_in(folder.path / "saved");
  REQUIRE(names.size() == 2);  // and manifest.json
  const int done = std::stoi(names.begin()->substr(std::string("iteration-").size()));
  CHECK(done > 0);
  if (arm == "local-sgd:8") CHECK(done % 8 == 0);  // with the averages of an uninterrupted run
  words.insert(words.end(), {"--resume=saved", "--steps=" + std::to_string(done + 2)});
  const auto resumed = run_in(folder, words, "resumed");
  CHECK(resumed["step_losses"].size() == 2);
}

TEST_CASE("under another launcher, too, a folder with later checkpoints is refused") {
  const Folder folder;
  run_in(folder, training({"--save=saved"}, 1), "r");
  const auto before = names_in(folder.path / "saved");
  Start start = folder.start(training({"--save=saved", "--ranks=1", "--batch-size=32"}, 1));
  const std::string store = "file:" + (folder.path / "store").string();
  start.variables.insert({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"KOLO_STORE", store}});
  const ProgramResult ended = run_program(start);
  INFO(ended.output);
  CHECK(ended.exit_code == 2);
  CHECK_THAT(ended.output, ContainsSubstring("it has checkpoints of a run up to iteration 4"));
  CHECK(names_in(folder.path / "saved") == before);
}

TEST_CASE("a second signal ends a run at once") {
  const Folder folder;
  Words words = endless_evaluation({"train", "--save=saved"});
  words.emplace_back("--epochs=1");  // after the last iteration the first signal ends nothing
  Program program(folder.start(words));
  program.wait_for("starting");
  program.signal(SIGINT);
  program.wait_for("a second signal ends it at once");
  program.signal(SIGINT);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 128 + SIGINT);
  check_nothing_is_left(program, folder);
}
