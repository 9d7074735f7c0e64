// kolo-train as its users run it: processes, transports, reports, and what goes wrong.
#include "test/train/experiments/program.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/support/catch.h"
#include "test/train/experiments/small_run.h"
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

}  // namespace

TEST_CASE("compare runs the arms over a transport, proves them equal and writes a whole report") {
  const Folder folder;
  const std::string transport = GENERATE("shm", "tcp");
  const Ended ended = run_program(small({"compare", "--transport", transport, "--report", "out",
                                         "--strategies", "ring,ps,ps:everywhere"}),
                                  folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("images/s, all workers"));
  CHECK_THAT(ended.output,
             ContainsSubstring("the same, bit for bit, in all arms (ring, ps, ps:everywhere)"));
  CHECK_THAT(ended.output, ContainsSubstring("Every rank moved the bytes"));
  const auto report = nlohmann::json::parse(std::ifstream(folder.path / "out/report.json"));
  REQUIRE(report["runs"].size() == 3);
  for (const auto& run : report["runs"]) {
    CHECK(run["transport"] == transport);
    CHECK(run["final_hash"] == report["runs"][0]["final_hash"]);
    check_run(run);
  }
  CHECK(report["runs"][1]["ranks"].size() == 3);  // two workers and a server
  CHECK(report["machine"].contains("commit"));
  CHECK(fs::file_size(folder.path / "out/report.md") > 1000);
}

TEST_CASE("seeds repeat the arms, and three workers share uneven batches") {
  const Folder folder;
  const Ended ended =
      run_program(small({"compare", "--ranks", "3", "--seeds", "2", "--strategies",
                         "ring,ps:sharded:optimizer=server", "--global-batch", "31", "--no-report"},
                        1),
                  folder.text());
  INFO(ended.output);
  REQUIRE(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("ps:sharded:optimizer=server"));
  CHECK_THAT(ended.output, ContainsSubstring("["));  // a spread
  CHECK_FALSE(fs::exists(folder.path / "report"));
}

TEST_CASE("training that diverges ends with the iteration and what to do") {
  const Folder folder;
  const Ended ended = run_program(small({"compare", "--no-report", "--strategies", "ring", "--lr",
                                         "1e30", "--warmup-epochs", "0"}),
                                  folder.text());
  INFO(ended.output);
  CHECK(ended.exit_code != 0);
  CHECK_THAT(ended.output, ContainsSubstring("training has diverged; lower --lr"));
}

TEST_CASE("what is wrong from the start is said once, before anything runs") {
  const Folder folder;
  std::ofstream(folder.path / "file") << "in the way";
  const auto refuses = [&](const Words& words, const std::string& part) {
    const Ended ended = run_program(words, folder.text());
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
  refuses({"compare", "--no-report", "--transport", "pigeon"}, "unknown transport 'pigeon'");
  refuses({"compare", "--no-report", "--strategies", "ring:lr=0.5,ps"}, "must not differ");
}

TEST_CASE("ranks that another launcher started are checked against the flags") {
  const Folder folder;
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("KOLO_STORE", ("file:" + (folder.path / "store").string()).c_str(), 1);
  const Ended three = run_program(small({"train", "--strategies", "ps"}), folder.text());
  const Ended compare = run_program(small({"compare", "--no-report"}), folder.text());
  for (const char* name : {"RANK", "WORLD_SIZE", "KOLO_STORE"}) unsetenv(name);
  CHECK(three.exit_code == 2);
  CHECK_THAT(
      three.output,
      ContainsSubstring("needs 3 ranks (2 workers and 1 dedicated servers), and 2 were started"));
  CHECK(compare.exit_code == 2);
  CHECK_THAT(compare.output, ContainsSubstring("compare starts its ranks itself"));
}

TEST_CASE("real house numbers train too") {
  const fs::path data = kolo::train::real_data("svhn");
  if (kolo::train::is_skipped_without(data)) return;
  const Folder folder;
  const Ended ended =
      run_program({"train", "--dataset", "svhn:" + fs::canonical(data).string(), "--model", "small",
                   "--steps", "6", "--batch-size", "16", "--test-size", "64"},
                  folder.text());
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("test accuracy"));
}
