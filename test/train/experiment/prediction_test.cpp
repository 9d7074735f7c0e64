// Predicted times of iterations, from artificial records.
#include "train/experiment/prediction.h"

#include "test/support/catch.h"

namespace {

using namespace kolo::train;

constexpr Network kNetwork{100e6, 1e-3};  // 1 MB takes 10 ms

Arm arm_of(const char* text) { return parse_arms(text, {}).front(); }

// Two workers with 100 ms of compute: 5 data, 30 forward, 60 backward, 5 optimizer. `bytes` in
// buckets of which the last has 1 MB; the first is full after 10 ms of backward.
RunRecord run_of(double bytes, int buckets, int hops) {
  RunRecord run;
  run.workers = 2;
  for (int rank = 0; rank < 2; ++rank) {
    RankRecord record;
    record.rank = rank;
    record.parts = {0.005, 0.03, 0.06, 0.5, 0.005, 0};
    record.step_seconds = 0.6;
    record.formula_sent = record.formula_received = bytes;
    record.first_full = 0.01;
    record.hops = hops * buckets;
    record.last_hops = hops;
    record.last_bytes = 1e6;
    run.ranks.push_back(record);
  }
  return run;
}

// A server that moves the bytes of both workers.
RunRecord with_server(RunRecord run) {
  RankRecord server;
  server.is_worker = false;
  server.formula_sent = server.formula_received = 2 * run.ranks[0].formula_sent;
  run.ranks.push_back(server);
  run.servers = 1;
  return run;
}

}  // namespace

TEST_CASE("an exchange takes its bytes at the rate of the wire, and a latency per hop") {
  CHECK(exchange_seconds(kNetwork, 5e6, 6) == Approx(0.056));
  CHECK(exchange_seconds({0, 2e-3}, 5e6, 2) == Approx(0.004));
}

TEST_CASE("a network is known if its shape is the same between all ranks") {
  const auto network = network_of("1Gbit,1ms,jitter=2ms");
  REQUIRE(network);
  CHECK(network->bytes_per_second == Approx(125e6));
  CHECK(network->latency_seconds == Approx(2e-3));
  CHECK_FALSE(network_of(""));
  CHECK_FALSE(network_of("hosts:1Gbit,1ms"));
  CHECK_FALSE(network_of("1Gbit,1ms+0-1:10Mbit"));
}

TEST_CASE("backward hides exchanges of buckets, but not the last one") {
  const PredictedIteration much = predict(run_of(20e6, 4, 2), arm_of("ring"), kNetwork);
  CHECK(much.exposed == Approx(0.010 + 0.208 - 0.060));
  CHECK(much.seconds == Approx(0.1 + 0.158));
  const PredictedIteration little = predict(run_of(2e6, 2, 2), arm_of("ring"), kNetwork);
  CHECK(little.exposed == Approx(0.012));
}

TEST_CASE("exchanges after backward are exposed, with the latencies of each bucket") {
  CHECK(predict(run_of(2e6, 1, 2), arm_of("ring:sync=flat"), kNetwork).exposed == Approx(0.022));
  CHECK(predict(run_of(2e6, 50, 2), arm_of("ring:sync=naive"), kNetwork).exposed == Approx(0.120));
}

TEST_CASE("the next forward hides exchanges by priority") {
  const RunRecord run = run_of(20e6, 4, 2);
  CHECK(predict(run, arm_of("ring:sync=prioritized"), kNetwork).exposed ==
        Approx(0.010 + 0.208 - 0.090));
}

TEST_CASE("the busiest rank decides the time of an exchange") {
  const RunRecord run = with_server(run_of(20e6, 4, 2));
  CHECK(predict(run, arm_of("ps"), kNetwork).exposed == Approx(0.010 + 0.408 - 0.060));
}

TEST_CASE("the slowest worker decides the time of a synchronous iteration") {
  RunRecord run = run_of(2e6, 2, 2);
  run.ranks[1].step_seconds += 0.04;
  run.ranks[1].parts[static_cast<std::size_t>(Part::forward)] += 0.04;
  const PredictedIteration predicted = predict(run, arm_of("ring"), kNetwork);
  CHECK(predicted.seconds == Approx(0.152));
  CHECK(predicted.exposed == Approx((0.012 + 0.052) / 2));
}

TEST_CASE("a worker of an asynchronous server waits for its own bytes, or for a busy server") {
  const RunRecord light = with_server(run_of(2e6, 2, 2));
  CHECK(predict(light, arm_of("ps:async"), kNetwork).exposed == Approx(0.012));
  const RunRecord heavy = with_server(run_of(20e6, 4, 2));
  CHECK(predict(heavy, arm_of("ps:async"), kNetwork).seconds == Approx(0.4));
  CHECK(predict(heavy, arm_of("ps:ssp=0"), kNetwork).seconds == Approx(0.1 + 0.352));
}

TEST_CASE("a single worker exchanges nothing") {
  RunRecord run = run_of(0, 4, 0);
  run.ranks.pop_back();
  run.workers = 1;
  CHECK(predict(run, arm_of("ring"), kNetwork).exposed == Approx(0).margin(1e-12));
}
