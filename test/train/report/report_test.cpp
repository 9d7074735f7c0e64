// Reports from artificial records: contents, errors, complete files.
#include "train/report/report.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/support/catch.h"
#include "test/train/report/made_up_report.h"
#include "train/experiment/comparability.h"
#include "train/experiment/progress_bar.h"
#include "train/loop/metrics.h"
#include "train/report/table.h"

namespace {

using namespace kolo::train;
using kolo::test::made_up_report;
using kolo::test::made_up_run;

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The cells of a row of the table; none if there is no such row.
std::vector<std::string> cells(const Report& report, const std::string& label) {
  for (const TableRow& row : make_table(report).rows) {
    if (row.label == label) return row.cells;
  }
  return {};
}

// A temporary folder, removed by the destructor.
struct Folder {
  explicit Folder(const std::string& name)
      : path(std::filesystem::temp_directory_path() / (name + std::to_string(getpid()))) {}
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("report.json is valid and has the measurements") {
  const auto json = nlohmann::json::parse(report_json(made_up_report()));
  CHECK(json["format"] == "kolo-report-1");
  REQUIRE(json["runs"].size() == 2);
  const auto& run = json["runs"][1];
  CHECK(run["arm"] == "ps");
  CHECK(run["images_per_second"] == Approx(160));
  CHECK(run["bytes_match_formula"] == true);
  CHECK(run["ranks"].size() == 3);
  CHECK(json["skipped_iterations"] == 1);
  CHECK_FALSE(json.contains("incomplete"));
  CHECK(run["step_seconds_median"] == Approx(0.25));
  CHECK(run["epochs"][0]["test_accuracy"] == Approx(0.5));
}

TEST_CASE("an arm whose servers apply no gradients one by one has no staleness") {
  Report report = made_up_report();
  report.runs[1].gradients_applied = 8;
  report.runs[1].staleness = {6, 2};
  const std::string text = report_text(report);
  const std::size_t row = text.find("staleness of a gradient, mean");
  REQUIRE(row != std::string::npos);
  std::istringstream cells(text.substr(row, text.find('\n', row) - row));
  std::vector<std::string> words(std::istream_iterator<std::string>(cells), {});
  words.resize(std::remove(words.begin(), words.end(), "|") - words.begin());
  REQUIRE(words.size() >= 2);
  CHECK(words[words.size() - 2] == "-");
  CHECK(words.back() == "0.25");
}

TEST_CASE("a record is unchanged after conversion to JSON and back") {
  const RunRecord run = made_up_run("ps", 3, 1);
  CHECK(to_json_text(run_record_from(to_json_text(run))) == to_json_text(run));
  CHECK_THROWS_WITH(run_record_from("{\"arm\": 3"), ContainsSubstring("cannot be read"));
}

TEST_CASE("the table shows means and spreads over seeds, and servers only where there are some") {
  Report report = made_up_report();
  RunRecord faster = made_up_run("ring", 2, 0);
  for (RankRecord& rank : faster.ranks) rank.images_per_second = 100;
  report.runs.push_back(faster);
  report.runs.push_back(made_up_run("ps", 2, 1));
  const Table table = make_table(report);
  CHECK(table.columns == std::vector<std::string>{"ring", "ps"});
  CHECK(table.rows[0].cells[0] == "2 [2, 2]");
  CHECK(table.rows[1].cells[0] == "180.0 [160.0, 200.0]");
  CHECK_THAT(report_text(report), ContainsSubstring("come from 2 counted iterations"));
  CHECK_THAT(report_text(report), ContainsSubstring("cores busy, all servers"));
  CHECK_THAT(report_markdown(report),
             ContainsSubstring("| images/s, all workers | 180.0 [160.0, 200.0] |"));
}

TEST_CASE("the table shows predicted times and their errors, or nothing without a known network") {
  Report report = made_up_report();
  for (const TableRow& row : make_table(report).rows) CHECK(row.label != "iteration predicted, ms");
  report.runs[0].predicted_step_seconds = 0.2;
  report.runs[0].predicted_exposed = 0.044;
  CHECK(cells(report, "iteration predicted, ms") == std::vector<std::string>{"200.0", "-"});
  CHECK(cells(report, "  error, %") == std::vector<std::string>{"-20.0", "-"});
  CHECK(cells(report, "exposed predicted, ms") == std::vector<std::string>{"44.0", "-"});
  CHECK_THAT(report_text(report), ContainsSubstring("10.0"));
}

TEST_CASE("three seeds have a mean and a standard deviation") {
  Report report;
  for (const std::uint64_t seed : {1, 2, 3}) {
    report.runs.push_back(made_up_run("ring", seed, 0));
    for (RankRecord& rank : report.runs.back().ranks)
      rank.images_per_second = 70 + 10 * static_cast<double>(seed);
  }
  CHECK(make_table(report).rows[1].cells[0] == "180.0 ± 20.0");
  CHECK_THAT(report_markdown(report), ContainsSubstring("180.0 ± 20.0"));
}

TEST_CASE("images/s of a host count dedicated servers as hosts") {
  const auto json = nlohmann::json::parse(report_json(made_up_report()));
  CHECK(json["runs"][0]["images_per_second_per_host"] == Approx(80));
  CHECK(json["runs"][1]["images_per_second_per_host"] == Approx(160.0 / 3));
  CHECK(cells(made_up_report(), "  each host") == std::vector<std::string>{"80.0", "53.3"});
}

TEST_CASE("the table shows waits of workers, and the staleness of gradients by updates") {
  Report report = made_up_report();
  for (RankRecord& rank : report.runs[0].ranks) rank.exposed_in_backward = 0.015;
  CHECK(cells(report, "workers idle, %") == std::vector<std::string>{"10", "16"});
  CHECK(cells(report, "  0/1/2/3/4/more updates, %").empty());
  report.runs[1].staleness = {50, 25, 0, 10, 0, 5, 10};
  report.runs[1].gradients_applied = 100;
  CHECK(cells(report, "  0/1/2/3/4/more updates, %") ==
        std::vector<std::string>{"-", "50/25/0/10/0/15"});
}

TEST_CASE("findings on weights and losses cover all seeds") {
  Report report = made_up_report();
  for (RunRecord& run : report.runs) run.final_hash = "one";
  for (const char* arm : {"ring", "ps"}) {
    RunRecord run = made_up_run(arm, 2, 0);
    run.seed = report.runs.front().seed + 1;
    run.final_hash = "another";
    report.runs.push_back(run);
  }
  CHECK_THAT(report_text(report), ContainsSubstring("equal, bit for bit, in all arms"));
  report.runs.back().final_hash = "a third";
  report.runs.back().epochs.back().train_loss += 0.00003;
  CHECK_THAT(report_text(report),
             ContainsSubstring("parameters of ps differ from those of ring") &&
                 ContainsSubstring("of the last epoch differ by at most 3e-05"));
}

TEST_CASE("an arm that trains in another way is not what others are compared with") {
  Report report = made_up_report();
  for (RunRecord& run : report.runs) run.final_hash = "one";
  RunRecord other = made_up_run("local-sgd:4", 2, 0);
  other.seed = report.runs.front().seed;
  other.difference = "averages";
  other.final_hash = "another";
  report.runs.insert(report.runs.begin(), other);
  CHECK_THAT(report_text(report), ContainsSubstring("local-sgd:4 (averages) trains in another") &&
                                      ContainsSubstring("equal, bit for bit, in all other arms"));
}

TEST_CASE("bytes that differ from the formula are reported") {
  Report report = made_up_report();
  CHECK_THAT(report_text(report), !ContainsSubstring("WARNING: the bytes"));
  report.runs[0].ranks[1].bytes_sent += 1000;
  CHECK_FALSE(report.runs[0].bytes_match());
  CHECK_THAT(report_text(report), ContainsSubstring("WARNING: the bytes"));
}

TEST_CASE(
    "runs that differ in more than their strategy are rejected, with the term and both values") {
  std::vector<RunRecord> runs = made_up_report().runs;
  CHECK_NOTHROW(require_comparable(runs));
  runs[1].terms["learning rate"] = "0.2";
  CHECK_THROWS_WITH(require_comparable(runs),
                    ContainsSubstring("learning rate is '0.1' in 'ring' and '0.2' in 'ps'"));
  runs[1].terms.erase("learning rate");
  CHECK_THROWS_AS(require_comparable(runs), ComparisonRefused);
  auto alone = made_up_report().runs;  // one worker: a ring without communication
  alone[0].workers = alone[1].workers = 1;
  alone[0].terms.erase("transport");
  CHECK_NOTHROW(require_comparable(alone));
  alone[0].workers = 2;
  CHECK_THROWS_AS(require_comparable(alone), ComparisonRefused);
  runs[1].seed = 2;  // another seed may have other terms
  CHECK_NOTHROW(require_comparable(runs));
}

TEST_CASE("an incomplete comparison says so, and why") {
  Report report = made_up_report();
  CHECK_THAT(report_text(report), !ContainsSubstring("INCOMPLETE"));
  report.runs.pop_back();
  report.incomplete = "ps: rank 2 was killed by signal 9";
  CHECK_THAT(report_text(report),
             ContainsSubstring("INCOMPLETE") && ContainsSubstring("rank 2 was killed by signal 9"));
  CHECK_THAT(report_markdown(report), ContainsSubstring("- INCOMPLETE"));
  CHECK(nlohmann::json::parse(report_json(report))["incomplete"] == report.incomplete);
}

TEST_CASE("a report without plots has no links to them, and says why") {
  Report report = made_up_report();
  CHECK_THAT(report_markdown(report), ContainsSubstring("](bytes.png)"));
  report.no_plots = "no plots: the script failed; to try again, run: python3 script.py out";
  CHECK_THAT(report_markdown(report),
             ContainsSubstring("*" + report.no_plots + "*") && !ContainsSubstring(".png"));
}

TEST_CASE("findings that need several arms or workers are omitted for one") {
  Report report = made_up_report();
  CHECK_THAT(report_text(report), ContainsSubstring("final parameters are equal"));
  CHECK_THAT(report_text(report), ContainsSubstring("replicas were compared 8 times"));
  report.runs.pop_back();
  CHECK_THAT(report_text(report), !ContainsSubstring("final parameters"));
  report.runs[0].workers = 1;
  CHECK_THAT(report_text(report), !ContainsSubstring("replicas"));
}

TEST_CASE("the check of a folder leaves no trace") {
  const Folder folder("kolo_report_test_");
  std::filesystem::create_directory(folder.path);
  const auto below = folder.path / "made" / "for" / "this";
  require_writable(below.string());
  require_writable((folder.path / "made" / "").string());
  require_writable(folder.path.string());
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a folder that cannot be written is rejected, without the name of the probe file") {
  const Folder folder("kolo_report_test_");
  const std::string pid = std::to_string(getpid());
  std::filesystem::create_directories(folder.path / ("..probe-" + pid + "." + pid + ".part/full"));
  CHECK_THROWS_WITH(
      require_writable(folder.path.string()),
      "--report: the folder '" + folder.path.string() +
          "' cannot be written: Is a directory; choose another folder, or make it writable");
}

TEST_CASE(
    "files are written completely, old plots are removed, and an unwritable folder is reported") {
  const Folder folder("kolo_report_test_");
  require_writable(folder.path.string());
  std::ofstream(folder.path / "throughput.png") << "old";
  write_report(folder.path.string(), report_json(made_up_report()),
               report_markdown(made_up_report()));
  CHECK(nlohmann::json::parse(text_of(folder.path / "report.json"))["runs"].size() == 2);
  CHECK(text_of(folder.path / "report.md") == report_markdown(made_up_report()));
  CHECK_FALSE(std::filesystem::exists(folder.path / "throughput.png"));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    CHECK(entry.path().extension() != ".part");
  }
  const std::string below_a_file = (folder.path / "report.json" / "below").string();
  CHECK_THROWS_WITH(require_writable(below_a_file), ContainsSubstring(below_a_file));
}

TEST_CASE("the first iterations do not count for speeds, but at least one does") {
  CHECK(counted_iterations(10, 3) == 7);
  CHECK(counted_iterations(3, 5) == 1);
  CHECK(counted_iterations(0, 5) == 0);
  std::vector<IterationRecord> iterations(4);
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    iterations[i].samples = 10;
    iterations[i].wall = i < 2 ? 5.0 : 1.0;
    iterations[i].parts[0] = 0.125;
    iterations[i].parts[1] = 0.125;
    settle_parts(iterations[i]);
  }
  const RankRecord mean = summarize(iterations, 2);
  CHECK(mean.images_per_second == Approx(10));
  CHECK(mean.parts[static_cast<std::size_t>(Part::other)] == Approx(0.75));
  CHECK(mean.forward_median == 0.125);
}

TEST_CASE("a quantile lies between its neighbours") {
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({1, 2}, 0.5) == Approx(1.5));
  CHECK(quantile({}, 0.5) == 0);
}

TEST_CASE("the progress line fits its width and shows the fraction of all work") {
  ProgressNote note;
  note.activity = "training";
  note.epoch = 2;
  note.epochs = 4;
  note.iteration = 50;
  note.iterations = 100;
  CHECK(fraction_done(note) == Approx(0.5));
  const std::string line = progress_line({"ps", 1, 2}, note, 0.75, 61, 200);
  CHECK_THAT(line, ContainsSubstring(" 75 %"));
  CHECK_THAT(line, ContainsSubstring("epoch 2/4"));
  CHECK_THAT(line, ContainsSubstring("1:01 left"));
  const std::string narrow = progress_line({"ps", 1, 2}, note, 0.75, 61, 60);
  CHECK_THAT(narrow, ContainsSubstring("[######..] ") && ContainsSubstring("1:01 left"));
  CHECK(narrow.size() <= 60);
  CHECK(progress_line({"ps", 1, 2}, note, 0.75, 61, 40).size() == 40);
  note.activity = "starting";
  note.iteration = 0;
  CHECK_THAT(progress_line({"ps", 1, 2}, note, 0.5, -1, 200),
             Catch::Matchers::EndsWith("ps (2/2) starting"));
}

TEST_CASE("a loss above that of a guess, and a test loss that is no number, are findings") {
  Report report = made_up_report();
  CHECK_THAT(report_text(report), !ContainsSubstring("diverged"));
  RunRecord& run = report.runs[1];
  run.classes = 10;
  run.epochs.back().train_loss = 3.1;  // above the first iteration's, 3
  run.epochs.back().test_loss = std::numeric_limits<double>::quiet_NaN();
  run.epochs.back().test_note = "the statistics have overflowed";
  const std::string text = report_text(report);
  CHECK_THAT(text, ContainsSubstring("above that of a guess (2.3): " + run.arm + " (3.1)"));
  CHECK_THAT(text, ContainsSubstring("the test loss of " + run.arm +
                                     " after epoch 1 is no number: the statistics have "
                                     "overflowed."));
  const RunRecord again = run_record_from(to_json_text(run));
  CHECK(std::isnan(again.epochs.back().test_loss));
  CHECK(again.epochs.back().test_note == run.epochs.back().test_note);
}

TEST_CASE("arms with more processes than cores are named") {
  Report report = made_up_report();
  report.machine["cores"] = "2";
  CHECK_THAT(report_text(report), ContainsSubstring("more processes than the 2 cores of this "
                                                    "machine: " +
                                                    report.runs[1].arm + " (3)."));
  report.machine["cores"] = "3";
  CHECK_THAT(report_text(report), !ContainsSubstring("more processes than"));
}

TEST_CASE("the table compares accuracies at equal seconds") {
  Report report = made_up_report();
  report.runs[0].epochs = {{1, 3, 2.0, 0.3, true, 1.5, 0.5, {}, 1.0, 0.1},
                           {2, 6, 1.0, 0.4, true, 1.2, 0.75, {}, 2.0, 0.1}};
  report.runs[0].training_seconds = 2.0;
  report.runs[1].epochs = {{1, 3, 2.0, 0.3, true, 1.5, 0.625, {}, 1.9, 0.1},
                           {2, 6, 1.0, 0.4, true, 1.2, 0.875, {}, 3.8, 0.1}};
  report.runs[1].training_seconds = 3.8;
  const auto cells_of = [&](const std::string& label) {
    for (const TableRow& row : make_table(report).rows) {
      if (row.label == label) return row.cells;
    }
    return std::vector<std::string>{};
  };
  CHECK(cells_of("test accuracy, %") == std::vector<std::string>{"75.00", "87.50"});
  CHECK(cells_of("  after 2.0 s of training, %") == std::vector<std::string>{"75.00", "62.50"});
  report.runs[1].epochs[0].training_seconds = 2.1;  // later
  CHECK(cells_of("  after 2.0 s of training, %").empty());
}
