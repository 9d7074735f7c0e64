// Probe timeouts: the rank that the error names if a channel is not measured in time.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/wait_graph.h"
#include "collectives/planner/probe.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 60s;
constexpr auto kShort = 50ms;  // the waits between ranks are published before, so this is enough

// Connected ranks of one host. Each measures when a test calls measure().
class Ranks {
 public:
  Ranks(int size, int cores, const std::string& shape = "")
      : hosts_(static_cast<std::size_t>(size), 0), cores_(cores) {
    std::vector<std::future<std::unique_ptr<Transport>>> made;
    for (int rank = 0; rank < size; ++rank) {
      made.push_back(std::async(std::launch::async, [this, size, rank, shape] {
        TransportRequest request{rank, size, prefixed(store_, "transport/"), Clock::now() + kLong};
        request.shape = shape;
        return make_transport("inproc", request);
      }));
    }
    for (auto& each : made) transports_.push_back(each.get());
  }

  Store& store() { return *store_; }

  Costs measure(int rank, std::chrono::milliseconds timeout) {
    const auto size = static_cast<int>(hosts_.size());
    Transport& transport = *transports_[static_cast<std::size_t>(rank)];
    std::vector<Channel*> channels;
    for (int peer = 0; peer < size; ++peer)
      channels.push_back(peer == rank ? nullptr : &transport.channel(peer));
    WaitPolicy policy(size, cores_);
    ProbeRequest request;
    request.rank = rank;
    request.size = size;
    request.channels = channels;
    request.hosts = hosts_;
    request.cores = cores_;
    request.transport = &transport;
    request.policy = &policy;
    request.store = store_.get();
    request.deadline = Clock::now() + timeout;
    return measure_costs(request);
  }

  void say_for(int rank, int awaited) {
    const WaitEdge one{awaited};
    publish_wait_edges(*store_, rank, {&one, 1});
  }

 private:
  const std::shared_ptr<Store> store_ = make_local_store();
  const std::vector<int> hosts_;
  const int cores_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

void require_named(int rank, const RankOutcome& outcome) {
  INFO(outcome.text);
  CHECK(outcome.code == ErrorCode::kDeadline);
  CHECK_THAT(outcome.text, ContainsSubstring("waits too, at the end of the chain for rank " +
                                             std::to_string(rank) + "; is rank " +
                                             std::to_string(rank) + " alive?"));
}

}  // namespace

TEST_CASE("a probe timeout names the rank that holds up all others") {
  Ranks ranks(5, 16);
  ranks.say_for(1, 4);
  ranks.say_for(4, 3);
  require_named(3, outcome_of([&] { ranks.measure(0, kShort); }));
  ranks.say_for(0, 1);
  // knows of rank 3 only through the store
  require_named(3, outcome_of([&] { ranks.measure(2, kShort); }));
}

TEST_CASE("a measuring rank publishes the awaited rank after a while, and clears it at the end") {
  Ranks ranks(2, 16);
  auto first = std::async(std::launch::async, [&] { ranks.measure(0, kLong); });
  CHECK(ranks.store().get("awaited/0", Clock::now() + kLong) == "1");
  ranks.measure(1, kLong);
  first.get();
  CHECK(ranks.store().try_get("awaited/0") == "");
}

// A measurement of all that a fast link shows would need 9 s, 7 s and 12 s. Four ranks on one core
// exchange messages in a ring too.
TEST_CASE(
    "measuring a slow link ends within an eighth of the timeout, with the same costs on all") {
  const auto [shape, size] =
      GENERATE(table<std::string, int>({{"3Mbit,5ms", 2}, {"1Gbit,30ms", 2}, {"1Gbit,30ms", 4}}));
  Ranks ranks(size, 1, shape);
  std::vector<std::future<Costs>> others;
  for (int rank = 1; rank < size; ++rank)
    others.push_back(std::async(std::launch::async, [&, rank] { return ranks.measure(rank, 4s); }));
  const Costs costs = ranks.measure(0, 4s);
  for (auto& other : others) CHECK(other.get() == costs);
  CHECK(costs.local.latency_us > 4000);
  CHECK(costs.local.latency_us < 60'000);
  if (shape[0] == '3') CHECK(costs.local.send_us_per_byte > 1);  // 2.7 on the wire
}

}  // namespace kolo::test
