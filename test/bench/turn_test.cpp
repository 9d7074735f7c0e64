// A turn's journey as text to another process, and back.
#include "bench/turn.h"

#include <stdexcept>

#include "bench/peers/elsewhere.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

TEST_CASE("an order arrives as it was sent") {
  Order order;
  order.turn.problem = {
      Collective::kExclusiveScan, ElementType::kInt64, ReduceOp::kBitXor, false, 0,
      (std::size_t{1} << 40) + 1};
  order.turn.warmup = 7;
  order.turn.iterations = 12'345;
  order.turn.seconds = 0.125;
  order.turn.is_checked = false;
  order.turn.checks_waiting = true;
  order.turn.iteration = 0xfedcba98;
  order.data_path = "/proc/1/fd/2";
  order.data_bytes = (std::size_t{1} << 41) + 4096;
  order.input_path = "/proc/1/fd/3 \"quoted\"";
  order.input_bytes = 4096;
  const Order read = parse_order(to_text(order));
  const Problem& problem = read.turn.problem;
  REQUIRE(problem.collective == Collective::kExclusiveScan);
  REQUIRE(problem.type == ElementType::kInt64);
  REQUIRE(problem.op == ReduceOp::kBitXor);
  REQUIRE_FALSE(problem.is_in_place);
  REQUIRE(problem.count == (std::size_t{1} << 40) + 1);
  REQUIRE(read.turn.warmup == 7);
  REQUIRE(read.turn.iterations == 12'345);
  REQUIRE(read.turn.seconds == 0.125);
  REQUIRE_FALSE(read.turn.is_checked);
  REQUIRE(read.turn.checks_waiting);
  REQUIRE(read.turn.iteration == 0xfedcba98);
  REQUIRE(read.data_path == order.data_path);
  REQUIRE(read.data_bytes == order.data_bytes);
  REQUIRE(read.input_path == order.input_path);
  REQUIRE(read.input_bytes == order.input_bytes);
}

TEST_CASE("a result arrives to the last bit") {
  const TurnResult result{0.1, {1.0 / 3, 2e-9, 12'345'678.9}, 42, 0xffffffff};
  const TurnResult read = parse_turn_result(to_text(result));
  REQUIRE(read.first_us == result.first_us);
  REQUIRE(read.times_us == result.times_us);
  REQUIRE(read.wrong == 42);
  REQUIRE(read.iteration == 0xffffffff);
}

TEST_CASE("what is no turn is refused") {
  REQUIRE_THROWS_AS(parse_turn("{}"), std::invalid_argument);
  REQUIRE_THROWS_AS(parse_turn(""), std::invalid_argument);
  REQUIRE_THROWS_AS(parse_turn_result("[1, 2]"), std::invalid_argument);
  REQUIRE_THROWS_AS(parse_order("turn"), std::invalid_argument);
}
