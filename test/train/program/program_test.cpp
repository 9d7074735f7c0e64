// kolo-train as users run it: processes, transports, reports, errors.
#include "test/train/program/program.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/small_run.h"
#include "test/train/real_data.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

void check_run(const nlohmann::json& run) {
  CHECK(run["bytes_match_formula"] == true);
  CHECK(run["replica_checks"].get<int>() >= 4);
  CHECK(run["epochs"].size() == 2);
  CHECK(run["step_losses"].size() == 8);
  CHECK(run["images_per_second"].get<double>() > 0);
  for (const auto& epoch : run["epochs"]) CHECK(epoch["test_loss"].get<double>() > 0);
}

// A list of words in train/compare.sh: NAME='...'.
std::set<std::string> list_in_script(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(fs::path(KOLO_SOURCE_DIR) / "train/compare.sh").rdbuf();
  const std::string script = text.str();
  const auto begin = script.find("\n" + name + "='") + name.size() + 3;
  std::istringstream words(script.substr(begin, script.find('\'', begin) - begin));
  return std::set<std::string>(std::istream_iterator<std::string>(words), {});
}

// The error message of kolo-train for a value of a flag.
std::string refusal(const Folder& folder, const std::string& flag, const std::string& value) {
  return run_program({"compare", "--no-report", flag + "=" + value}, folder.text()).output;
}

// The list of valid values in an error message; it ends at a semicolon or at the end of the line.
std::set<std::string> known_instead(const Folder& folder, const std::string& flag,
                                    const std::string& value) {
  const std::string text = refusal(folder, flag, value);
  const std::regex before("expected one of |ps takes |ring takes ");
  std::smatch there;
  REQUIRE(std::regex_search(text, there, before));
  std::string said = there.suffix();
  said.resize(std::min(said.find_first_of(";\n"), said.size()));
  said = std::regex_replace(said, std::regex("[(),]|\\band\\b"), " ");
  std::istringstream values(said);
  return std::set<std::string>(std::istream_iterator<std::string>(values), {});
}

}  // namespace

TEST_CASE(
    "compare runs the arms over a transport, checks that they are equal and writes a complete "
    "report") {
  const Folder folder;
  const std::string transport = GENERATE("shm", "tcp");
  const ProgramResult ended =
      run_program(small({"compare", "--transport", transport, "--report", "out", "--strategies",
                         "ring,ps,ps:everywhere", "--straggle", "rank=1,factor=1.1"}),
                  folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("images/s, all workers"));
  CHECK_THAT(ended.output,
             ContainsSubstring("equal, bit for bit, in all arms (ring, ps, ps:everywhere)"));
  CHECK_THAT(ended.output, ContainsSubstring("Every rank moved the bytes"));
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"));
  REQUIRE(report["runs"].size() == 3);
  for (const auto& run : report["runs"]) {
    CHECK(run["transport"] == transport);
    CHECK(run["terms"]["straggler"] == "rank 1 computes 1.1 times as long");
    CHECK(run["final_hash"] == report["runs"][0]["final_hash"]);
    check_run(run);
  }
  CHECK(report["runs"][1]["ranks"].size() == 3);  // two workers and a server
  CHECK(report["machine"].contains("commit"));
  CHECK(fs::file_size(folder.path / "out/report.md") > 1000);
}

TEST_CASE("seeds repeat the arms, and three workers share uneven batches") {
  const Folder folder;
  Words words = small({"compare", "--ranks", "3", "--seeds", "2", "--strategies",
                       "ring,ps:sharded:optimizer=server", "--global-batch", "31", "--no-report"},
                      1);
  std::erase(words, "--batch-size=16");
  const ProgramResult ended = run_program(words, folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("ps:sharded:optimizer=server"));
  CHECK_THAT(ended.output, ContainsSubstring("["));  // a spread
  CHECK_FALSE(fs::exists(folder.path / "report"));
}

TEST_CASE(
    "servers apply gradients in the order of arrival, with the bits of a sum if bound to it") {
  const Folder folder;
  const ProgramResult ended = run_program(
      small({"compare", "--report", "r", "--strategies",
             "ps:optimizer=server,ps:ssp=0,ps:servers=2:backup=0,ps:async,ps:ssp=2,ps:backup=1"}),
      folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "r" / "report.json"));
  const auto& runs = report["runs"];
  REQUIRE(runs.size() == 6);
  for (const std::size_t i : {1, 2}) CHECK(runs[i]["final_hash"] == runs[0]["final_hash"]);
  for (const std::size_t i : {1, 3, 4}) {
    CHECK(runs[i]["gradients_applied"].get<double>() > 0);
    CHECK(runs[i]["gradients_dropped"] == 0);
  }
  // Between a worker's pull and its gradient, the other may go from 2 behind to 2 ahead.
  CHECK(runs[4]["staleness"].size() <= 2 * 2 + 3);
  CHECK(runs[5]["gradients_dropped"].get<double>() > 0);
  CHECK_THAT(ended.output, ContainsSubstring("staleness of a gradient"));
  CHECK_THAT(ended.output, ContainsSubstring("Every rank moved the bytes"));
}

TEST_CASE("parameters around one rank, and averages of parameters, train as a ring does") {
  const Folder folder;
  const ProgramResult ended = run_program(small({"compare", "--report", "r", "--profile",
                                                 "--strategies", "ring,dataparallel,local-sgd:3"}),
                                          folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "r" / "report.json"));
  const auto& runs = report["runs"];
  REQUIRE(runs.size() == 3);
  CHECK(runs[1]["final_hash"] == runs[0]["final_hash"]);
  CHECK(runs[2]["final_hash"] != runs[0]["final_hash"]);
  for (const auto& run : runs) {
    double seconds = 0;
    for (const auto& layer : run["layers"])
      seconds += layer["forward"].get<double>() + layer["backward"].get<double>();
    const auto parts = run["ranks"][0]["parts"].get<std::vector<double>>();
    CHECK(run["layers"].size() == 8);
    CHECK((seconds > 0 && seconds <= parts[1] + parts[2]));  // forward and backward
  }
  CHECK_THAT(ended.output, ContainsSubstring("Time by layer, rank 0, dataparallel:"));
  CHECK_THAT(ended.output, ContainsSubstring("local-sgd:3 (3 local steps) trains in another way"));
  CHECK_THAT(ended.output, ContainsSubstring("Every rank moved the bytes"));
}

TEST_CASE("crossover measures a ring and each number of servers, and writes a report") {
  const Folder folder;
  const ProgramResult ended =
      run_program({"crossover", "--ranks=3", "--bytes=40000", "--shape=80Mbit,1ms", "--report=out"},
                  folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("everywhere") &&
                               ContainsSubstring("Dedicated servers beat the ring"));
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"));
  REQUIRE(report["points"].size() == 2 + 3 + 3);
  for (const auto& point : report["points"]) {
    CHECK(point["predicted_seconds"].get<double>() > 0);
    // A wire of 80 Mb/s carries no byte in less time.
    CHECK(point["measured_seconds"].get<double>() > 0.004);
  }
  CHECK(fs::exists(folder.path / "out/report.md"));
}

TEST_CASE("diverging training ends with the iteration and advice") {
  const Folder folder;
  const ProgramResult ended = run_program(small({"compare", "--no-report", "--strategies", "ring",
                                                 "--lr", "1e30", "--warmup-epochs", "0"}),
                                          folder.text());
  INFO(ended.output);
  CHECK(ended.exit_code != 0);
  CHECK_THAT(ended.output, ContainsSubstring("training has diverged; lower --lr"));
}

TEST_CASE("wrong arguments are reported once, before anything runs") {
  const Folder folder;
  std::ofstream(folder.path / "file") << "in the way";
  const auto refuses = [&](const Words& words, const std::string& part) {
    const ProgramResult ended = run_program(words, folder.text());
    INFO(ended.output);
    CHECK(ended.exit_code == 2);
    CHECK_THAT(ended.output, ContainsSubstring(part));
    CHECK(std::count(ended.output.begin(), ended.output.end(), '\n') == 1);
  };
  refuses({"compare", "--report", "file/below"}, "'file/below' cannot be written");
  refuses({"compare", "--no-report", "--dataset", "svhn:nowhere"}, "nowhere");
  refuses({"compare", "--no-report", "--dataset", "letters"}, "letters");
  refuses({"compare", "--no-report", "--ranks", "9", "--train-size", "8"},
          "more ranks than samples");
  refuses(
      {"compare", "--no-report", "--train-size", "100", "--batch-size", "51"},
      "--batch-size 51: an iteration takes 102 samples of 2 ranks, but there are 100; lower it");
  refuses({"compare", "--no-report", "--transport", "pigeon"}, "unknown transport 'pigeon'");
  refuses({"crossover", "--shape", "1Gbit", "--straggle", "rank=1,factor=2"},
          "crossover does not expect '--straggle'");
  refuses({"crossover", "--report", "out"}, "--shape is missing");
  refuses({"crossover", "--shape", "1Gbit", "--report", "file/below"}, "cannot be written");
  CHECK_FALSE(fs::exists(folder.path / "out"));
  refuses({"compare", "--no-report", "--strategies", "ring:lr=0.5,ps"},
          "may differ in their strategy only");
}

TEST_CASE("a run in bfloat16 learns as one in float32, not with the same bits") {
  const Folder folder;
  const auto run_in = [&](const std::string& precision) {
    const ProgramResult ended = run_program(
        small({"train", "--backend=reference", "--precision=" + precision, "--report", "out"}),
        folder.text());
    INFO(ended.output);
    REQUIRE(ended.exit_code == 0);
    return nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"))["runs"][0];
  };
  const auto exact = run_in("float32"), rounded = run_in("bfloat16");
  CHECK(rounded["terms"]["precision"] == "bfloat16");
  CHECK(rounded["final_hash"] != exact["final_hash"]);
  const double loss = exact["epochs"].back()["train_loss"];
  CHECK(rounded["epochs"].back()["train_loss"].get<double>() == Approx(loss).epsilon(0.02));
}

TEST_CASE("a rank with one sample is refused by a model that normalises over one value") {
  const Folder folder;
  const bool is_together = GENERATE(false, true);
  Words words{"train", "--model",        "resnet18", "--train-size", "6", "--test-size",
              "4",     "--global-batch", "5",        "--epochs",     "1"};
  if (is_together) words.emplace_back("--sync-batch-norm");
  const ProgramResult ended = run_program(words, folder.text());
  INFO(ended.output);
  CHECK(ended.exit_code == 2);
  CHECK_THAT(ended.output,
             ContainsSubstring((is_together ? "all ranks together have" : "rank 1 has") +
                               std::string(" only 1 in the last batch of an epoch")));
  const std::string said = "kolo-train: model 'resnet18'";
  CHECK(ended.output.find(said) == ended.output.rfind(said));
}

TEST_CASE("compare.sh knows the options of compare") {
  const Folder folder;
  const std::string help = run_program({"compare", "--help"}, folder.text()).output;
  const std::regex option("\\n  (--[^ \n]*)");
  std::string shown;
  for (std::sregex_iterator at(help.begin(), help.end(), option); at != std::sregex_iterator();
       ++at)
    shown += (*at)[1].str() + ",";
  std::set<std::string> in_script = list_in_script("with_value");
  in_script.merge(list_in_script("without_value"));
  std::set<std::string> in_help;
  std::istringstream words(shown);
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) in_help.insert(word);
  }
  CHECK(in_script == in_help);
}

TEST_CASE("compare.sh knows the values that compare accepts") {
  const Folder folder;
  for (const auto& [flag, name] :
       std::map<std::string, std::string>{{"--model", "models"},
                                          {"--stem", "stems"},
                                          {"--lr-schedule", "schedules"},
                                          {"--reproducibility", "orders"},
                                          {"--ps-mode", "modes"},
                                          {"--ps-optimizer", "places"},
                                          {"--strategies", "heads"},
                                          {"--dataset", "datasets"}}) {
    INFO(flag);
    CHECK(known_instead(folder, flag, "no such value") == list_in_script(name));
  }
  CHECK(known_instead(folder, "--strategies", "ps:none") == list_in_script("words_of_ps"));
  CHECK(known_instead(folder, "--strategies", "ring:none") == list_in_script("words_of_ring"));
  const std::set<std::string> transports = list_in_script("transports");
  CHECK(transports.contains("auto"));
  // A build may lack some transports.
  CHECK(std::ranges::includes(transports, known_instead(folder, "--transport", "inproc")));
}

TEST_CASE("compare.sh knows which options take numbers, and of what kind") {
  const Folder folder;
  std::set<std::string> counts, counts_or_none, numbers;
  for (const std::string& flag : list_in_script("with_value")) {
    if (flag.find('_') != std::string::npos || flag == "--n-gpus") continue;  // other names
    const std::string text = refusal(folder, flag, "x");
    if (text.find("expected a number") != std::string::npos) numbers.insert(flag);
    if (text.find("expected a whole number") == std::string::npos) continue;
    const bool is_from_one = std::regex_search(text, std::regex("(of at least|from) 1"));
    (is_from_one ? counts : counts_or_none).insert(flag);
  }
  CHECK(counts == list_in_script("counts"));
  CHECK(counts_or_none == list_in_script("counts_or_none"));
  CHECK(numbers == list_in_script("numbers"));
}

TEST_CASE("an existing report is replaced, with a message") {
  const Folder folder;
  const Words words = small({"compare", "--report=out", "--strategies=ring"});
  const ProgramResult first = run_program(words, folder.text());
  const ProgramResult second = run_program(words, folder.text());
  CHECK((first.exit_code == 0 && second.exit_code == 0));
  const std::string line = "--report out: replaces the report that is there";
  CHECK(first.output.find(line) == std::string::npos);
  CHECK_THAT(second.output, ContainsSubstring(line));
}

TEST_CASE("help that cannot be written is a failure") {
  const Folder folder;
  const std::string program = KOLO_TRAIN;
  for (const char* where : {">&-", ">/dev/full"}) {
    for (const char* words : {" --version ", " compare --help "})
      CHECK(std::system((program + words + where + " 2>/dev/null").c_str()) != 0);
  }
}

TEST_CASE("a closed reader of the table is reported, and the report is still written") {
  const Folder folder;
  Start start = folder.start(small({"compare", "--report=out", "--strategies=ring"}, 1));
  start.prepare = [] {
    std::array<int, 2> ends{};
    return pipe(ends.data()) == 0 && close(ends[0]) == 0 &&
           dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO;
  };
  const ProgramResult ended = run_program(start);
  INFO(ended.output);
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.output, ContainsSubstring("cannot write it to standard output: Broken pipe"));
  CHECK(fs::exists(folder.path / "out/report.md"));
}

TEST_CASE("a report without plots says why in their place, and has no dead links") {
  // Found before any installed matplotlib.
  const auto [matplotlib, code, why] = GENERATE(table<std::string, int, std::string>(
      {{"raise SystemExit('no pen')", 1, "no plots: the script failed"},
       {"raise ImportError", 0, "no plots: python3 has no matplotlib"}}));
  const Folder folder;
  std::ofstream(folder.path / "matplotlib.py") << matplotlib << '\n';
  Start start = folder.start(small({"compare", "--report=out", "--strategies=ring"}, 1));
  start.variables["PYTHONPATH"] = folder.text();
  const ProgramResult ended = run_program(start);
  INFO(ended.output);
  CHECK(ended.exit_code == code);
  CHECK_THAT(ended.output, ContainsSubstring(why) && ContainsSubstring("images/s, all workers"));
  std::ostringstream text;
  text << std::ifstream(folder.path / "out/report.md").rdbuf();
  CHECK_THAT(text.str(), ContainsSubstring(why) && ContainsSubstring("plot_report.py out") &&
                             !ContainsSubstring(".png"));
}

TEST_CASE("ranks that another launcher started are checked against the flags") {
  const Folder folder;
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("KOLO_STORE", ("file:" + (folder.path / "store").string()).c_str(), 1);
  const ProgramResult three = run_program(small({"train", "--strategies", "ps"}), folder.text());
  const ProgramResult compare = run_program(small({"compare", "--no-report"}), folder.text());
  const ProgramResult seeds = run_program(small({"train", "--seeds=2"}), folder.text());
  for (const char* name : {"RANK", "WORLD_SIZE", "KOLO_STORE"}) unsetenv(name);
  CHECK(seeds.exit_code == 2);
  CHECK_THAT(seeds.output, ContainsSubstring("--seeds: ranks of another launcher train once"));
  CHECK(three.exit_code == 2);
  CHECK_THAT(
      three.output,
      ContainsSubstring("needs 3 ranks (2 workers and 1 dedicated server), and 2 were started"));
  CHECK(compare.exit_code == 2);
  CHECK_THAT(compare.output, ContainsSubstring("compare starts its ranks itself"));
}

TEST_CASE("real house numbers can be trained on") {
  const fs::path data = kolo::train::real_data("svhn");
  if (kolo::train::is_skipped_without(data)) return;
  const Folder folder;
  const ProgramResult ended =
      run_program({"train", "--dataset", "svhn:" + fs::canonical(data).string(), "--model", "small",
                   "--steps", "6", "--batch-size", "16", "--test-size", "64"},
                  folder.text());
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("test accuracy"));
}
