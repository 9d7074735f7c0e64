// Measurement harness: it must detect a library's wrong results. Ranks are threads. The libraries
// here exchange data through memory of this test, and some are wrong on purpose.
#include "bench/measure/measure.h"

#include <barrier>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "bench/measure/cores.h"
#include "bench/output/report.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

enum class Lie { kNone, kOneElement, kDoesNothing, kDoesNotWait, kTires };

// All ranks' inputs, and a barrier.
struct Table {
  explicit Table(int ranks) : inputs(static_cast<std::size_t>(ranks)), barrier(ranks) {}
  std::vector<std::vector<float>> inputs;
  std::barrier<> barrier;
};

class TestLibrary : public Library {
 public:
  TestLibrary(Table& table, int rank, Lie lie)
      : table_(table), rank_(static_cast<std::size_t>(rank)), lie_(lie) {}

  std::string name() const override { return "test"; }
  std::string transport() const override { return "table"; }
  std::string algorithm(const Problem&) const override { return "gather"; }
  std::string objection(const Problem&) const override { return {}; }

  void run(const Problem& problem, const void* in, void* out) override {
    if (problem.collective == Collective::kBarrier) {
      if (lie_ != Lie::kDoesNotWait) table_.barrier.arrive_and_wait();
      return;
    }
    if (lie_ == Lie::kDoesNothing) return;
    const auto* mine = static_cast<const float*>(in);
    table_.inputs[rank_].assign(mine, mine + problem.count);
    table_.barrier.arrive_and_wait();
    auto* sums = static_cast<float*>(out);
    std::fill(sums, sums + problem.count, 0.0F);
    for (const auto& input : table_.inputs) {
      for (std::size_t i = 0; i < problem.count; ++i) sums[i] += input[i];
    }
    if (lie_ == Lie::kTires && ++runs_ > 3) spin(std::chrono::milliseconds(1));
    if (lie_ == Lie::kOneElement && rank_ == 1) sums[problem.count - 1] += 1;
    table_.barrier.arrive_and_wait();
  }

 private:
  static void spin(std::chrono::milliseconds time) {
    const auto end = Clock::now() + time;
    while (Clock::now() < end) {
    }
  }

  Table& table_;
  std::size_t rank_;
  Lie lie_;
  int runs_ = 0;
};

Arguments small_run(Collective collective, const char* name) {
  Arguments arguments;
  arguments.command = name;
  arguments.problem.collective = collective;
  arguments.ranks = 2;
  arguments.max_bytes = 64 * 1024;
  arguments.iterations = 8;
  arguments.warmup = 1;
  arguments.passes = 2;
  return arguments;
}

std::vector<Row> run_with(const Arguments& arguments, Lie lie, std::size_t bytes) {
  Table table(arguments.ranks);
  const auto store = make_local_store();
  std::vector<Row> rows;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    ranks.emplace_back([&, rank] {
      RankGroup group(rank, arguments.ranks, *store, arguments.timeout);
      TestLibrary library(table, rank, lie);
      Bench bench(group, arguments);
      const auto found = bench.measure({&library}, bytes);
      if (rank == 0) rows = found;
    });
  }
  for (auto& rank : ranks) rank.join();
  return rows;
}

}  // namespace

TEST_CASE("a limit above twice the fastest time is discarded") {
  std::vector<Row> rows(2);
  rows[0].time_us.p10 = 20;
  rows[1].time_us.p10 = 10;
  REQUIRE(credible_limit({9, 8, 1000}, rows) == 8.0);
  REQUIRE(credible_limit({19.0}, rows) == 19.0);
  REQUIRE_FALSE(credible_limit({39990, 21}, rows));
  REQUIRE_FALSE(credible_limit({}, rows));
  REQUIRE_FALSE(credible_limit({1.0}, {}));
}

TEST_CASE("a correct library has no wrong elements, and its times are in order") {
  const auto rows = run_with(small_run(Collective::kAllReduce, "allreduce"), Lie::kNone, 4096);
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0].wrong == 0U);
  REQUIRE(rows[0].iterations == 8);
  REQUIRE(rows[0].bytes == 4096);
  REQUIRE(rows[0].time_us.p10 > 0);
  REQUIRE(rows[0].time_us.p10 <= rows[0].time_us.median);
  REQUIRE(rows[0].time_us.median <= rows[0].time_us.p90);
  REQUIRE(rows[0].pass_us.size() == 2);
}

TEST_CASE("a pass ends soon even if its iterations become slower than the first ones") {
  Arguments arguments = small_run(Collective::kAllReduce, "allreduce");
  arguments.iterations = 0;
  arguments.seconds = 0.02;
  arguments.passes = 1;
  arguments.warmup = 3;
  const auto rows = run_with(arguments, Lie::kTires, 4096);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].wrong == 0U);
  CHECK(rows[0].iterations >= 2);
  CHECK(rows[0].iterations + rows[0].left_out <=
        128);  // 60 ms and one more check; twice that if a core was taken
}

TEST_CASE("cores that moved between two probes belong to no regime") {
  const auto regime_of = [](std::initializer_list<double> probes) {
    CoreDistance distance;
    for (const double us : probes) distance.add(us);
    return std::string(distance.regime());
  };
  CHECK(regime_of({}) == "unknown");
  CHECK(regime_of({0}) == "unknown");
  CHECK(regime_of({0.12, 0.13, 0.12}) == "near");
  CHECK(regime_of({0.49, 0.5}) == "far");
  // on both sides of the boundary, but close together
  CHECK(regime_of({0.34, 0.36, 0.37}) == "far");
  CHECK(regime_of({0.12, 0.12, 0.49}) == "moved");
  CHECK(regime_of({0.49, 0.12}) == "moved");
  CHECK(regime_of({0.12, 0.28}) == "near");
  CHECK(regime_of({0.05, 0.1, 0.05}) == "near");
  CHECK(regime_of({0.12, 40, 0.12}) == "disturbed");
}

TEST_CASE("a distance marked as disturbed stays so, wherever its cores were") {
  CoreDistance near;
  near.add(0.1);
  REQUIRE(std::string_view(near.regime()) == "near");
  CoreDistance disturbed = near;
  disturbed.disturb();
  REQUIRE(std::string_view(disturbed.regime()) == "disturbed");
  near.add(disturbed);
  REQUIRE(std::string_view(near.regime()) == "disturbed");
}

TEST_CASE("a heading prints no figure of a disturbed probe") {
  CHECK(round_trip_text(0.12) == "a cache line's round trip 0.12 us (near)");
  CHECK(round_trip_text(312.5) ==
        "a cache line's round trip is not known: another program had a core (disturbed)");
}

TEST_CASE("costs come with a warning if the probes around them differ") {
  CoreDistance distance;
  distance.add(0.12);
  distance.add(0.13);
  CHECK(costs_warning(distance).empty());
  distance.add(0.49);
  CHECK_THAT(costs_warning(distance), ContainsSubstring("the cores moved while the costs were"));
  distance.add(312.5);
  CHECK(distance.last_us() == 312.5);
  CHECK_THAT(costs_warning(distance), ContainsSubstring("another program had a core while the"));
}

TEST_CASE("a row whose cores moved says so in the table and in its JSON line") {
  Row row;
  row.iterations = 8;
  row.distance.add(0.12);
  row.distance.add(0.49);
  CHECK(line_text(row.distance) == "moved");
  const auto line = nlohmann::json::parse(json_line(row));
  CHECK(line["regime"] == "moved");
  CHECK(line["cache_line_probes_us"] == std::vector<double>{0.12, 0.49});
  CHECK(line["cache_line_us"].get<double>() == Approx(0.305));
}

TEST_CASE("a row during which a core was taken says so in the table, explained below it") {
  Row row;
  row.iterations = 8;
  for (const double us : {0.12, 40.0, 0.12}) row.distance.add(us);
  CHECK(line_text(row.distance) == "disturbed");
  std::ostringstream table;
  JsonLines no_lines("");
  const Arguments arguments = small_run(Collective::kAllReduce, "allreduce");
  Report report(arguments, table, no_lines);
  report.add({row});
  CHECK(table.str().find("disturbed") != std::string::npos);
  CHECK(table.str().find("line disturbed:") == std::string::npos);
  report.end();
  CHECK(table.str().find("# line disturbed: another program had a core") != std::string::npos);
  CHECK(table.str().find("line moved:") == std::string::npos);
}

TEST_CASE("rows of three peers are below kolo's, and no line exceeds 160 columns") {
  Row own;
  own.library = "kolo";
  own.transport = "inproc";
  own.algorithm = "bidirectional_ring";
  own.problem.type = ElementType::kBFloat16;
  own.problem.op = ReduceOp::kAverage;
  own.problem.count = std::size_t{1} << 29;
  own.ranks = 2;
  own.bytes = std::size_t{1} << 30;
  own.iterations = 10000;
  own.time_us = {1234567, 1134567, 1334567, 1434567};
  own.first_us = 1534567;
  own.wrong = 0;
  own.limit_us = 1000000;
  for (const double us : {0.12, 40.0, 0.12}) own.distance.add(us);
  std::vector<Row> rows = {own};
  for (const char* peer : {"gloo", "openmpi:ucx", "mpich"}) {
    rows.push_back(own);
    rows.back().library = rows.back().peer = peer;
    rows.back().time_us.median *= static_cast<double>(rows.size());
  }
  rows[1].wrong = 12345;
  std::ostringstream table;
  JsonLines no_lines("");
  Arguments arguments = small_run(Collective::kAllReduce, "allreduce");
  arguments.problem = own.problem;
  arguments.algorithm = own.algorithm;
  Report report(arguments, table, no_lines);
  Table nobody(1);
  report.begin(TestLibrary(nobody, 0, Lie::kNone), 0.1, {}, {"gloo", "openmpi:ucx", "mpich"});
  const std::size_t head = table.str().size();
  report.add(rows);
  std::istringstream lines(table.str().substr(head));
  std::vector<std::string> texts;
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  REQUIRE(texts.size() == 4);
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(text.size() <= 160);
    CHECK(text.find(" | ") == texts[0].find(" | "));
  }
  CHECK(texts[1].find("gloo") != std::string::npos);
  CHECK(texts[1].find("2.00x") != std::string::npos);
  CHECK(texts[2].find("openmpi:ucx") != std::string::npos);
  CHECK(texts[2].ends_with("3.00x    ratio best peer"));  // gloo's results are wrong
  CHECK(texts[3].ends_with("4.00x    ratio"));
}

TEST_CASE("long names and long ratios keep the columns aligned") {
  std::ostringstream table;
  JsonLines no_lines("");
  Arguments arguments = small_run(Collective::kAllReduce, "allreduce");
  arguments.problem.type = ElementType::kFloat8E4M3;
  arguments.against = {"openmpi:recursive_doubling"};
  Report report(arguments, table, no_lines);
  Table nobody(1);
  report.begin(TestLibrary(nobody, 0, Lie::kNone), 0.1, {}, arguments.against);
  Row own;
  own.transport = "inproc";
  own.problem.type = ElementType::kFloat8E4M3;
  own.time_us = {1, 1, 1, 1};
  Row peer = own;
  peer.peer = arguments.against.front();
  peer.time_us.median = 12040.77;
  for (const char* algorithm : {"ring", "recursive_multiplying"}) {
    own.algorithm = algorithm;
    report.add({own, peer});
  }
  std::istringstream lines(table.str());
  std::string heading;
  while (heading.find(" by ") == std::string::npos) std::getline(lines, heading);
  for (std::string line; std::getline(lines, line);) {
    INFO(heading << "\n" << line);
    CHECK(line.find(" | ") == heading.find(" | "));
    const bool is_peer = line.find("ratio") != std::string::npos;
    CHECK(line.find(is_peer ? "12041x" : "-", line.find(" | ")) != std::string::npos);
    CHECK(line.size() == heading.size() - (is_peer ? std::string(" disturbed").size() : 0));
  }
}

TEST_CASE("a ratio has only significant digits") {
  CHECK(ratio_text(0.5) == "0.50");
  CHECK(ratio_text(99.99) == "99.99");
  CHECK(ratio_text(99.999) == "100.0");
  CHECK(ratio_text(999.94) == "999.9");
  CHECK(ratio_text(12040.77) == "12041");
}

TEST_CASE("the algorithm column is as wide as the longest possible name") {
  CHECK(by_width(Collective::kAllReduce, "", 18) == std::string("recursive_multiplying").size());
  CHECK(by_width(Collective::kPushPull, "", 18) == std::string("ordered_parameter_server").size());
  CHECK(by_width(Collective::kAllReduce, "ring", 18) == 18);
}

TEST_CASE("a peer's transport is printed if it differs from kolo's") {
  CHECK(peer_over("openmpi", "shm", "ucx") == "openmpi (over shm)");
  CHECK(peer_over("openmpi:ucx", "ucx", "ucx") == "openmpi:ucx");
}

TEST_CASE("a call that moves no data has no bandwidth, and the table says why") {
  Row alone;
  alone.ranks = 1;
  alone.bytes = 4096;
  alone.time_us = {2, 2, 2, 2};
  Row barrier = alone;
  barrier.ranks = 2;
  barrier.bytes = 0;
  for (const Row& row : {alone, barrier}) {
    const auto line = nlohmann::json::parse(json_line(row));
    CHECK(line["algbw_GBps"].is_null());
    CHECK(line["busbw_GBps"].is_null());
    std::ostringstream table;
    JsonLines no_lines("");
    Arguments arguments = small_run(Collective::kAllReduce, "allreduce");
    arguments.ranks = row.ranks;
    Report report(arguments, table, no_lines);
    report.add({row});
    CHECK(table.str().find("0.00") == std::string::npos);
    report.end();
    CHECK(table.str().find(row.ranks == 1
                               ? "# no bandwidth: one rank sends nothing;"
                               : "# no bandwidth: no bytes are moved;") != std::string::npos);
  }
}

TEST_CASE("few iterations have no 99th percentile") {
  CHECK(p99_text(12, 8) == "-");
  CHECK(p99_text(12, 99) == "-");
  CHECK(p99_text(12, 100) == "12.00");
}

TEST_CASE("more ranks than cores have a core distance too, of rank 0's own threads") {
  if (available_cores().size() < 2) return;
  Arguments arguments = small_run(Collective::kAllReduce, "allreduce");
  arguments.ranks = static_cast<int>(available_cores().size()) + 1;
  const auto rows = run_with(arguments, Lie::kNone, 64);
  CHECK(rows[0].distance.probes_us().size() == 3);  // before both passes, and at the end
}

TEST_CASE("one wrong element of one rank is counted in every iteration") {
  const auto rows =
      run_with(small_run(Collective::kAllReduce, "allreduce"), Lie::kOneElement, 4096);
  REQUIRE(rows[0].wrong.value() >= rows[0].iterations);
}

TEST_CASE("the harness detects a library that does nothing") {
  const auto rows =
      run_with(small_run(Collective::kAllReduce, "allreduce"), Lie::kDoesNothing, 4096);
  REQUIRE(rows[0].wrong.value() > 4096 / sizeof(float) * rows[0].iterations);
}

TEST_CASE("the harness detects a barrier that lets ranks through too early") {
  REQUIRE(run_with(small_run(Collective::kBarrier, "barrier"), Lie::kNone, 0)[0].wrong == 0U);
  REQUIRE(
      run_with(small_run(Collective::kBarrier, "barrier"), Lie::kDoesNotWait, 0)[0].wrong.value() >
      0);
}

TEST_CASE("unchecked results are not reported as right") {
  Arguments arguments = small_run(Collective::kAllReduce, "allreduce");
  arguments.is_checked = false;
  const auto rows = run_with(arguments, Lie::kDoesNothing, 4096);
  REQUIRE_FALSE(rows[0].wrong.has_value());
  REQUIRE(nlohmann::json::parse(json_line(rows[0]))["wrong"].is_null());
}

TEST_CASE("a JSON line has the fields that other programs read") {
  const auto rows = run_with(small_run(Collective::kAllReduce, "allreduce"), Lie::kNone, 4096);
  const auto line = nlohmann::json::parse(json_line(rows[0]));
  for (const char* field :
       {"library", "transport", "collective", "algorithm", "ranks", "bytes", "iterations",
        "median_us", "p10_us", "p90_us", "algbw_GBps", "busbw_GBps", "wrong", "in_place", "servers",
        "reproducibility", "segment_bytes", "pass_us", "cache_line_probes_us"}) {
    INFO(field);
    REQUIRE(line.contains(field));
  }
  REQUIRE(line["collective"] == "allreduce");
  REQUIRE(line["bytes"] == 4096);
  REQUIRE(line["wrong"] == 0);
  REQUIRE(line["pass_us"].size() == 2);
  REQUIRE_FALSE(line.contains("peer"));
  Row peer = rows[0];
  peer.peer = "openmpi:ring";
  REQUIRE(nlohmann::json::parse(json_line(peer))["peer"] == "openmpi:ring");
  REQUIRE(line["algbw_GBps"].get<double>() ==
          Approx(4096 / line["median_us"].get<double>() / 1000));
  REQUIRE(line["busbw_GBps"].get<double>() == Approx(line["algbw_GBps"].get<double>()));
}
