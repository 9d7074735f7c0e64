// The replica guard passes equal replicas, and reports the difference of unequal ones.
#include "train/loop/replica_guard.h"

#include <cmath>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/train/tiny_network.h"
#include "train/loop/hash.h"

namespace {

using namespace kolo;
using namespace kolo::train;

}  // namespace

TEST_CASE("equal replicas pass the check, and servers are ignored") {
  test::run_ranks(4, "inproc", [](Communicator& communicator) {
    const bool is_worker = communicator.rank() < 3;
    tensor::Network network = test::make_tiny_network(is_worker ? 1 : 2);
    ReplicaGuard guard(communicator, network.parameters(), 3);
    const std::uint64_t hash = guard.check(1);
    test::expect(!is_worker || hash == hash_of(network.parameters().values()),
                 "the hash is the workers'");
    test::expect(guard.checks() == 1, "counted");
  });
}

TEST_CASE(
    "a single different bit is found, and its rank, iteration and parameter are reported on every "
    "rank") {
  const auto outcomes = test::run_threads(3, [](int rank, std::shared_ptr<Store> store) {
    CommunicatorOptions options;
    options.transport = "inproc";
    Communicator communicator(rank, 3, std::move(store), options);
    tensor::Network network = test::make_tiny_network(1);
    tensor::Parameters& parameters = network.parameters();
    ReplicaGuard guard(communicator, parameters, 3);
    guard.check(39);
    float& planted = parameters.value(parameters.find("second.weight"))[5];
    if (rank == 1) planted = std::nextafter(planted, 1.0f);
    guard.check(40);
  });
  for (const auto& outcome : outcomes) {
    CHECK_THAT(outcome.text, ContainsSubstring("after iteration 40"));
    CHECK_THAT(outcome.text, ContainsSubstring("ranks 0, 2 have"));
    CHECK_THAT(outcome.text, ContainsSubstring("rank 1 has"));
    CHECK_THAT(outcome.text, ContainsSubstring("second.weight"));
  }
}

TEST_CASE("the hash depends on every bit and every position") {
  std::vector<float> values(1001, 1.0f);
  const std::uint64_t before = hash_of(values);
  CHECK(hash_of(values) == before);
  for (const std::size_t i : {0u, 1u, 7u, 8u, 500u, 999u, 1000u}) {
    std::vector<float> changed = values;
    changed[i] = std::nextafter(1.0f, 2.0f);
    CHECK(hash_of(changed) != before);
    std::vector<float> swapped = changed;
    std::swap(swapped[i], swapped[i == 0 ? 8 : i - 1]);
    CHECK(hash_of(swapped) != hash_of(changed));
  }
  CHECK(hash_of(std::span(values).first(1000)) != before);
}
