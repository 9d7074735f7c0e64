// The command crossover without processes: flags, predictions, findings.
#include "train/crossover/crossover.h"

#include <algorithm>

#include "test/support/catch.h"
#include "train/crossover/crossover_report.h"
#include "train/options.h"
#include "transports/settings.h"

namespace {

using namespace kolo::train;

constexpr double kBytes = 12e6;
constexpr Network kWire{100e6, 0};  // 120 ms for all bytes

double predicted(const std::vector<CrossoverPoint>& points, const std::string& arm, int servers) {
  const auto point = std::ranges::find_if(
      points, [&](const CrossoverPoint& one) { return one.arm == arm && one.servers == servers; });
  REQUIRE(point != points.end());
  return point->predicted;
}

}  // namespace

TEST_CASE("the busiest wire decides the predicted time of an exchange") {
  const auto points = predict_crossover(4, kBytes, kWire);
  CHECK(predicted(points, "ring", 0) == Approx(0.18));
  CHECK(predicted(points, "everywhere", 0) == Approx(0.18));
  CHECK(predicted(points, "ps", 1) == Approx(0.48));
  CHECK(predicted(points, "ps", 4) == Approx(0.12));
  CHECK(predicted(points, "split", 1) == Approx(24.0 / 18 * 0.12));
  CHECK(predicted(points, "split", 4) == Approx(0.12));
}

TEST_CASE("each hop costs a latency") {
  const auto points = predict_crossover(4, 0, {0, 1e-3});
  CHECK(predicted(points, "ring", 0) == Approx(0.006));
  CHECK(predicted(points, "everywhere", 0) == Approx(0.002));
  CHECK(predicted(points, "ps", 2) == Approx(0.002));
}

TEST_CASE("two workers have no split servers") {
  CHECK(predict_crossover(2, kBytes, kWire).size() == 4);
}

TEST_CASE("dedicated servers beat a ring from n^2 / (2 (n - 1)) servers on") {
  const auto first = [](int n) {
    return first_better_servers(predict_crossover(n, kBytes, kWire), TimeBy::prediction);
  };
  CHECK_FALSE(first(2));
  CHECK(first(4) == 3);
  CHECK(first(8) == 5);
}

TEST_CASE("the findings of a crossover have both crossovers, and everywhere beside the ring") {
  auto points = predict_crossover(4, kBytes, kWire);
  for (CrossoverPoint& point : points) {
    if (point.arm != "split") point.measured = 1.1 * point.predicted;
    if (point.arm == "ps" && point.servers == 3) point.measured = 0.3;  // slower than the ring
  }
  const auto findings = crossover_findings(4, points);
  REQUIRE(findings.size() == 3);
  CHECK_THAT(findings[0], ContainsSubstring("2.67 for n = 4"));
  CHECK_THAT(findings[1], ContainsSubstring("from 3 on by the prediction, and from 4 on by the"));
  CHECK_THAT(findings[2], ContainsSubstring("1.00 times the time of the ring"));
  CHECK_THAT(crossover_table(points), ContainsSubstring("split") && ContainsSubstring("-9.1"));
}

TEST_CASE("wrong flags of crossover are refused") {
  const auto refuses = [](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), "crossover");
    CHECK_THROWS_WITH(parse_crossover(words), ContainsSubstring(part));
    CHECK_THROWS_AS(parse_crossover(words), UsageError);
  };
  refuses({}, "--shape is missing");
  refuses({"--shape=1ms"}, "expected one rate for all pairs");
  refuses({"--shape=hosts:1Gbit,1ms"}, "expected one rate for all pairs");
  refuses({"--shape=1Gbit", "--ranks=1"}, "expected a whole number from 2 to 32");
  refuses({"--shape=1Gbit", "--bytes=2"}, "from 4B to 16GiB, got '2'");
  for (const char* bytes : {"lots", "1MB", "17GiB", "-4", "99999999999999999999"})
    refuses({"--shape=1Gbit", std::string("--bytes=") + bytes}, "expected a size in B, KiB, MiB");
  refuses({"--shape=1Gbit", "--transport=inproc"}, "it connects threads of one process");
  refuses({"--shape=1Gbit", "--rank=3"}, "did you mean --ranks?");
  refuses({"--shape=1Gbit", "--strategies=ring"}, "crossover does not expect '--strategies");
  const CrossoverOptions options =
      parse_crossover({"crossover", "--shape=1Gbit,1ms", "--ranks=8", "--bytes=1001"});
  CHECK(options.bytes == 1000);  // whole floats
  CHECK(options.processes() == 16);
  CHECK(options.network.bytes_per_second == Approx(125e6));
  kolo::set_setting("KOLO_SHAPE", "");
}
