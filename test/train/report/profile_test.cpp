// The table of --profile, from artificial records.
#include "train/report/profile.h"

#include <nlohmann/json.hpp>

#include "test/support/catch.h"
#include "test/train/report/made_up_report.h"
#include "train/loop/metrics.h"

namespace {

using namespace kolo::train;
using kolo::test::made_up_report;
using kolo::test::made_up_run;

// Of an iteration of 250 ms: 40 communication, 15 optimizer, 10 data.
RunRecord profiled_run(const std::string& arm, std::uint64_t seed) {
  RunRecord run = made_up_run(arm, seed, 0);
  run.layers = {{"conv1", "conv2d", 0.02, 0.06, 8e9},
                {"after conv1", "relu", 0.001, 0.002, 0},
                {"fc", "linear", 0.03, 0.06, 1.8e9}};
  return run;
}

Report profiled_report() {
  Report report = made_up_report();
  report.runs = {profiled_run("ring", 1), profiled_run("ps", 1)};
  return report;
}

std::string text_of(const TableRow& row) {
  std::string text = row.label;
  for (const std::string& cell : row.cells) text += " | " + cell;
  return text;
}

}  // namespace

TEST_CASE("a profile shows layers and other parts by time, which add up to an iteration") {
  const Table table = profile_table(profiled_report(), "ring");
  std::vector<std::string> rows;
  for (const TableRow& row : table.rows) rows.push_back(text_of(row));
  CHECK(rows == std::vector<std::string>{"fc | linear | 30.000 | 60.000 | 90.000 | 36.0 | 20.0",
                                         "conv1 | conv2d | 20.000 | 60.000 | 80.000 | 32.0 | 100.0",
                                         "exposed communication |  | - | - | 40.000 | 16.0 | -",
                                         "optimizer |  | - | - | 15.000 | 6.0 | -",
                                         "other |  | - | - | 12.000 | 4.8 | -",
                                         "data |  | - | - | 10.000 | 4.0 | -",
                                         "after conv1 | relu | 1.000 | 2.000 | 3.000 | 1.2 | -"});
}

TEST_CASE("a short profile sums the rows that it leaves out") {
  const Table table = profile_table(profiled_report(), "ps", 5);
  REQUIRE(table.rows.size() == 6);
  CHECK(text_of(table.rows.back()) == "2 more |  | 1.000 | 2.000 | 13.000 | 5.2 | -");
}

TEST_CASE("a profile has means over seeds") {
  Report report = profiled_report();
  report.runs.push_back(profiled_run("ring", 2));
  report.runs.back().layers[0].forward += 0.04;
  report.runs.back().ranks[0].step_seconds += 0.04;
  CHECK(text_of(profile_table(report, "ring").rows[0]) ==
        "conv1 | conv2d | 40.000 | 60.000 | 100.000 | 37.0 | 80.0");
}

TEST_CASE("a report with a profile shows it for each arm, and warns of its times") {
  const Report report = profiled_report();
  const std::string warning = "WARNING: --profile read the clock at each layer";
  const std::string text = report_text(report), markdown = report_markdown(report);
  for (const std::string& one : {text, markdown}) {
    CHECK_THAT(one, ContainsSubstring(warning));
    CHECK_THAT(one, ContainsSubstring("conv1") && ContainsSubstring("GFLOP/s"));
  }
  CHECK_THAT(text, ContainsSubstring("Time by layer, rank 0, ps:"));
  CHECK_THAT(markdown, ContainsSubstring("## Time by layer") && ContainsSubstring("**ps**"));
  CHECK_THAT(report_text(made_up_report()), !ContainsSubstring("layer"));
  CHECK_THAT(report_markdown(made_up_report()), !ContainsSubstring("by layer"));
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["runs"][0]["layers"][2]["kind"] == "linear");
  CHECK(to_json_text(run_record_from(to_json_text(report.runs[0]))) ==
        to_json_text(report.runs[0]));
}

TEST_CASE("layers have the names of their parameters, or of the layer before") {
  kolo::tensor::Parameters parameters;
  const auto weight = parameters.add("layer1.0.conv1.weight", {2, 2}, kolo::tensor::Initial::zero);
  double seconds = 0;
  kolo::tensor::Profile profile([&seconds] { return seconds += 1; });
  profile.end_forward(0, {"flatten"});
  profile.end_forward(1, {"linear", weight, 12});
  profile.end_forward(2, {"relu"});
  profile.end_backward(1);
  const std::vector<LayerRecord> layers = layer_records(profile, parameters, 4);
  REQUIRE(layers.size() == 3);
  CHECK((layers[0].name == "after the images" && layers[0].kind == "flatten"));
  CHECK((layers[1].name == "layer1.0.conv1" && layers[2].name == "after layer1.0.conv1"));
  CHECK((layers[1].forward == 0.25 && layers[1].backward == 0.25 && layers[1].flops == 3));
}
