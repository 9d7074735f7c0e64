// Syntax of shapes and faults, and the errors for invalid text.
#include <stdexcept>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "transports/decorators/fault.h"
#include "transports/decorators/parsing.h"
#include "transports/decorators/shape.h"

using namespace kolo;
using namespace kolo::decorators;
using namespace std::chrono_literals;

namespace {

template <typename Parse>
std::string refusal(Parse parse, const std::string& text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

std::string shape_refusal(const std::string& text) { return refusal(parse_shape, text); }
std::string fault_refusal(const std::string& text) { return refusal(parse_faults, text); }

}  // namespace

TEST_CASE("rates, times and sizes have units") {
  CHECK(parse_rate("1Gbit") == 125'000'000u);
  CHECK(parse_rate("100Mbit") == 12'500'000u);
  CHECK(parse_rate("2.5Gbit") == 312'500'000u);
  CHECK(parse_rate("64Kbit") == 8'000u);
  CHECK(parse_rate("125MB") == 125'000'000u);
  CHECK(parse_duration("50us") == 50us);
  CHECK(parse_duration("1.5ms") == 1500us);
  CHECK(parse_duration("3ns") == 3ns);
  CHECK(parse_duration("2s") == 2s);
  CHECK(parse_bytes("64KiB") == 65536u);
  CHECK(parse_bytes("64KB") == 64000u);
  CHECK(parse_bytes("1B") == 1u);
  for (const char* wrong : {"", "1", "Gbit", "1gbit", "-1Gbit", "1.2.3Gbit", "1e3Mbit", "1Gbit ",
                            "nanGbit", "infMB", ".Gbit", "99999999999999999999Gbit"}) {
    INFO(wrong);
    CHECK_FALSE(parse_rate(wrong));
  }
  for (const char* wrong : {"1", "ms", "-1ms", "1m", "1min", "99999999999s"}) {
    INFO(wrong);
    CHECK_FALSE(parse_duration(wrong));
  }
}

TEST_CASE("a shape gives the path between every pair of ranks") {
  const Shape shape = parse_shape("1Gbit,1ms,jitter=100us,burst=64KiB,seed=7");
  const ShapedPath path = shape.path(0, 1, {});
  CHECK(path.is_shaped);
  CHECK(path.bytes_per_second == 125'000'000);
  CHECK(path.delay == 1ms);
  CHECK(path.jitter == 100us);
  CHECK(path.burst_bytes == 65536);
  CHECK_FALSE(path.is_own_wire);
  CHECK(shape.seed == 7);
  CHECK(parse_shape("1ms,1Gbit").path(0, 1, {}).bytes_per_second == 125'000'000);
  CHECK(parse_shape("1ms").path(0, 1, {}).bytes_per_second == 0);
  CHECK(parse_shape("125MB").path(0, 1, {}).delay == 0ns);
}

TEST_CASE("the seed in a shape's text is read again, whichever rule has the jitter") {
  for (const char* text :
       {"1ms,jitter=100us", "1Gbit,1ms,jitter=10us+0-1:10Mbit,2ms", "hosts:1ms,jitter=1us+5to1:off",
        "1Gbit+0to1:1ms,jitter=1us", "0-1:1ms,jitter=1us", "off+0-1:1ms,jitter=1us"}) {
    const Shape shape = parse_shape(text);
    INFO(text << " says " << shape.text);
    const Shape again = parse_shape(shape.text);
    CHECK(again.text == shape.text);
    CHECK(again.seed == shape.seed);
    CHECK(again.all.is_shaped == shape.all.is_shaped);
    CHECK(again.overrides.size() == shape.overrides.size());
  }
}

TEST_CASE("a shape between hosts does not affect pairs on one host") {
  const Shape shape = parse_shape("hosts:1Gbit,1ms");
  const std::vector<int> hosts = {0, 0, 1};
  CHECK_FALSE(shape.path(0, 1, hosts).is_shaped);
  CHECK(shape.path(1, 2, hosts).is_shaped);
  CHECK(shape.path(2, 0, hosts).delay == 1ms);
}

TEST_CASE("a pair follows the last rule for it") {
  const Shape shape = parse_shape("1Gbit,1ms+0-1:off+2to3:10Mbit+0to1:5ms");
  CHECK(shape.path(0, 1, {}).delay == 5ms);
  CHECK(shape.path(0, 1, {}).is_own_wire);
  CHECK_FALSE(shape.path(1, 0, {}).is_shaped);
  CHECK(shape.path(2, 3, {}).bytes_per_second == 1'250'000);
  CHECK(shape.path(3, 2, {}).bytes_per_second == 125'000'000);
  CHECK(parse_shape("off+0-1:1ms").path(1, 2, {}).is_shaped == false);
}

TEST_CASE("the text of a shape with jitter includes its seed, so that the run can be repeated") {
  CHECK(parse_shape("1ms,jitter=10us").text == "1ms,jitter=10us,seed=1");
  CHECK(parse_shape("1ms,jitter=10us,seed=5").text == "1ms,jitter=10us,seed=5");
  CHECK(parse_shape("1ms").text == "1ms");
}

TEST_CASE("the error for an invalid shape names the invalid part and the alternatives") {
  CHECK_THAT(shape_refusal("1Gbps"), ContainsSubstring("'1Gbps' is neither a rate (1Gbit"));
  CHECK_THAT(shape_refusal(""), ContainsSubstring("'' is neither a rate"));
  CHECK_THAT(shape_refusal("1Gbit,2Gbit"), ContainsSubstring("'2Gbit' is neither"));
  CHECK_THAT(shape_refusal("1Gbit, 1ms"), ContainsSubstring("no blanks"));
  CHECK_THAT(shape_refusal("0Gbit"), ContainsSubstring("'0Gbit' is not from 1Kbit to 1000Gbit"));
  CHECK_THAT(shape_refusal("2000Gbit"), ContainsSubstring("not from 1Kbit"));
  CHECK_THAT(shape_refusal("11s"), ContainsSubstring("'11s' is longer than 10s"));
  CHECK_THAT(shape_refusal("jitter=2"), ContainsSubstring("'jitter=2': expected a time"));
  CHECK_THAT(shape_refusal("burst=lots"),
             ContainsSubstring("'burst=lots': expected at most 1 GiB"));
  CHECK_THAT(shape_refusal("loss=1"), ContainsSubstring("'loss=1': expected jitter="));
  CHECK_THAT(shape_refusal("1ms,seed=x"), ContainsSubstring("'seed=x': expected a number"));
  CHECK_THAT(shape_refusal("1ms+0-1:2ms,seed=3"), ContainsSubstring("in the first rule, seed="));
  CHECK_THAT(shape_refusal("1ms+2ms"), ContainsSubstring("'2ms' names no pair"));
  CHECK_THAT(shape_refusal("1ms+hosts:2ms"), ContainsSubstring("'hosts:2ms' names no pair"));
  CHECK_THAT(shape_refusal("1ms+0-0:2ms"), ContainsSubstring("'0-0' is not a pair of ranks"));
  CHECK_THAT(shape_refusal("a-b:2ms"), ContainsSubstring("'a-b' is not a pair of ranks"));
  CHECK_THAT(shape_refusal("100Gbit,1s"), ContainsSubstring("12.5 GB would be in flight"));
  CHECK_THAT(
      refusal([](const std::string& text) { check_shape(parse_shape(text), 2); }, "1ms+0-2:off"),
      ContainsSubstring("there is no rank 2: this job has 2"));
}

TEST_CASE("a fault plan gives the rank, the time and the kind of each fault") {
  const FaultPlan plan =
      parse_faults("die@rank=1,segment=100+stall@for=2s,peer=3+storm@times=5,on=in");
  REQUIRE(plan.faults.size() == 3);
  CHECK(plan.faults[0].kind == FaultKind::kDie);
  CHECK((plan.faults[0].rank == 1 && plan.faults[0].peer == -1 && plan.faults[0].segment == 100));
  CHECK(plan.faults[1].kind == FaultKind::kStall);
  CHECK((plan.faults[1].time == 2s && plan.faults[1].peer == 3 && plan.faults[1].rank == -1));
  CHECK(plan.faults[2].kind == FaultKind::kStorm);
  CHECK((plan.faults[2].times == 5 && plan.faults[2].is_in && !plan.faults[2].is_out));
  CHECK(parse_faults("storm").faults[0].times == 3);
}

TEST_CASE("the error for an invalid fault plan names the invalid part and the alternatives") {
  CHECK_THAT(fault_refusal("explode"), ContainsSubstring("'explode' is none of die, lose, stall"));
  CHECK_THAT(fault_refusal(""), ContainsSubstring("'' is none of die"));
  CHECK_THAT(fault_refusal("die"), ContainsSubstring("'die' names no rank"));
  CHECK_THAT(fault_refusal("stall@rank=1"), ContainsSubstring("does not say for how long"));
  CHECK_THAT(fault_refusal("die@times=3"),
             ContainsSubstring("'times=3' of die: expected KEY=VALUE"));
  CHECK_THAT(fault_refusal("die@"), ContainsSubstring("'' of die: expected KEY=VALUE"));
  CHECK_THAT(fault_refusal("die@rank=x"), ContainsSubstring("'rank=x': expected a number"));
  CHECK_THAT(fault_refusal("lose@segment=0"),
             ContainsSubstring("'segment=0': expected a number from 1"));
  CHECK_THAT(fault_refusal("storm@on=both"),
             ContainsSubstring("'on=both': expected on=in or on=out"));
  CHECK_THAT(fault_refusal("stall@for=1day"), ContainsSubstring("'for=1day': expected a time"));
}
