// Text format of passes between processes: written and read back.
#include "bench/measure/pass.h"

#include <stdexcept>

#include "bench/peers/worker_processes.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

TEST_CASE("a worker request is read back as it was written") {
  WorkerRequest order;
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
  const WorkerRequest read = parse_worker_request(to_text(order));
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

TEST_CASE("a result is read back bit for bit") {
  const PassResult result{0.1, {1.0 / 3, 2e-9, 12'345'678.9}, 42, 0xffffffff};
  const PassResult read = parse_pass_result(to_text(result));
  REQUIRE(read.first_us == result.first_us);
  REQUIRE(read.times_us == result.times_us);
  REQUIRE(read.wrong == 42);
  REQUIRE(read.iteration == 0xffffffff);
}

TEST_CASE("impossible numbers in a pass or a result are refused") {
  const auto with = [](const std::string& text, const std::string& name, const char* value) {
    const auto begin = text.find("\"" + name + "\":") + name.size() + 3;
    return std::string(text).replace(begin, text.find_first_of(",}", begin) - begin, value);
  };
  const std::string turn = to_text(PassRequest{});
  for (const char* const name : {"collective", "type", "op", "servers", "count", "warmup",
                                 "iterations", "seconds", "iteration"}) {
    INFO(name);
    CHECK_NOTHROW(parse_pass_request(with(turn, name, "1")));
    CHECK_THROWS_AS(parse_pass_request(with(turn, name, "-1")), std::invalid_argument);
    CHECK_THROWS_AS(parse_pass_request(with(turn, name, "null")), std::invalid_argument);
    if (std::string(name) == "seconds") continue;
    CHECK_THROWS_AS(parse_pass_request(with(turn, name, "1e300")), std::invalid_argument);
    CHECK_THROWS_AS(parse_pass_request(with(turn, name, "1e1")), std::invalid_argument);
  }
  for (const char* const name : {"collective", "type", "op"})
    CHECK_THROWS_AS(parse_pass_request(with(turn, name, "100")), std::invalid_argument);
  CHECK_THROWS_AS(parse_pass_request(with(turn, "collective", "256")), std::invalid_argument);
  CHECK_THROWS_AS(parse_pass_request(with(turn, "warmup", "2147483648")), std::invalid_argument);
  CHECK_THROWS_AS(parse_p2p_pass_request(with(to_text(P2pPassRequest{}), "kind", "4")),
                  std::invalid_argument);
  CHECK_THROWS_AS(parse_p2p_pass_request(with(to_text(P2pPassRequest{}), "bytes", "-1")),
                  std::invalid_argument);
  const std::string result = to_text(PassResult{1, {2}, 0, 0});
  CHECK_THROWS_AS(parse_pass_result(with(result, "times_us", "[-2]")), std::invalid_argument);
  CHECK_THROWS_AS(parse_pass_result(with(result, "times_us", "{}")), std::invalid_argument);
  CHECK_THROWS_AS(parse_pass_result(with(result, "wrong", "1.5")), std::invalid_argument);
}

TEST_CASE("a port is parsed as a whole, or refused") {
  CHECK(parse_port("40133") == 40133);
  for (const char* const text : {"", "0", "65536", "-1", "40133 ", "port", "99999999999999999999"})
    CHECK_THROWS_AS(parse_port(text), std::invalid_argument);
}

TEST_CASE("text that is no pass is refused") {
  REQUIRE_THROWS_AS(parse_pass_request("{}"), std::invalid_argument);
  REQUIRE_THROWS_AS(parse_pass_request(""), std::invalid_argument);
  REQUIRE_THROWS_AS(parse_pass_result("[1, 2]"), std::invalid_argument);
  REQUIRE_THROWS_AS(parse_worker_request("turn"), std::invalid_argument);
}
