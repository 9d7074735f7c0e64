// Topology: hosts, processes and cores, derived from the locations that ranks publish, and the
// choice of a transport that follows.
#include "transports/base/topology.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/registry.h"

namespace kolo::test {
namespace {

const std::string kHere = "machine A\nprocess 1\n0 1\n-\n\n";
const std::string kSibling = "machine A\nprocess 2\n1 2\n-\n\n";
const std::string kLimited = "machine A\nprocess 3\n0 1 2 3\n1.500\n\n";
const std::string kAway = "machine B\nprocess 1\n0 1 2 3\n-\n\n";

std::string playing(const std::string& place, const std::string& host_id) {
  return place.substr(0, place.size() - 1) + host_id + "\n";
}

using Hosts = std::vector<int>;

}  // namespace

TEST_CASE("the topology shows which ranks share a host, a process and cores") {
  const auto one = topology_from({kHere, kHere}, 1);
  CHECK((one.is_one_process && one.is_one_host && one.local_ranks == 2 && one.local_index == 1 &&
         one.local_cores == 2));
  const auto two = topology_from({kHere, kSibling}, 0);
  CHECK((!two.is_one_process && two.is_one_host && two.local_cores == 3));
  const auto three = topology_from({kHere, kAway, kSibling}, 2);
  CHECK((!three.is_one_host && three.local_ranks == 2 && three.local_index == 1 &&
         three.local_cores == 3));
  CHECK(topology_from({kLimited, kHere}, 0).local_cores == 1);
  CHECK_THROWS_AS(topology_from({"nonsense", kHere}, 1), Error);
  const auto own = topology_from({describe_location(), describe_location()}, 0);
  CHECK((own.is_one_process && own.local_cores >= 1));
}

TEST_CASE("a location whose quota is not a number of cores is rejected") {
  for (const char* quota : {"many", "", "-1", "-1e300", "0", "nan", "1.5x"}) {
    INFO("quota " << quota);
    const std::string place = "machine A\nprocess 2\n0 1\n" + std::string(quota) + "\n\n";
    CHECK_THROWS_AS(topology_from({kHere, place}, 0), Error);
  }
}

TEST_CASE("a rank with another size is reported by its number, and an invalid size is rejected") {
  const auto answer = [](const std::string& text) {
    const auto store = make_local_store();
    store->add("sizes said", 1);
    store->set("size", text);
    try {
      require_one_size(*store, 1, 2, Clock::now() + std::chrono::seconds(60));
    } catch (const Error& error) {
      return std::pair(error.code(), error.peer());
    }
    FAIL("it was taken: " << text);
    return std::pair(ErrorCode::kSystem, 0);
  };
  CHECK(answer("0 3") == std::pair(ErrorCode::kMismatch, 0));
  for (const char* const text : {"", "0", "two 2", "-5 3", "0 0", "0 -3", "0 2 2", "0 2x",
                                 "0 99999999999999999999", "99999999999999999999 2"})
    CHECK(answer(text) == std::pair(ErrorCode::kProtocol, kNoPeer));
}

TEST_CASE("hosts are numbered in the order of their first ranks, the same on every rank") {
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(topology_from({kHere, kSibling, kHere, kLimited}, rank).hosts == Hosts{0, 0, 0, 0});
    CHECK(topology_from({kAway, kHere, kAway, kSibling}, rank).hosts == Hosts{0, 1, 0, 1});
  }
  CHECK(topology_from({kAway}, 0).hosts == Hosts{0});
  CHECK_THROWS_AS(topology_from({"nonsense", kHere}, 1), Error);
}

TEST_CASE("a machine can act as several hosts, whose ranks share its cores but no memory") {
  const std::string red = playing(kHere, "red");
  const std::string blue = playing(kSibling, "blue");
  const auto both = topology_from({red, blue, red}, 1);
  CHECK(both.hosts == Hosts{0, 1, 0});
  CHECK_FALSE(both.is_one_host);
  CHECK((both.local_ranks == 3 && both.local_index == 1 && both.local_cores == 3));
  const auto threads = topology_from({red, playing(kHere, "blue")}, 0);
  CHECK_FALSE(threads.is_one_process);
  CHECK(topology_from({red, kHere}, 0).hosts == Hosts{0, 1});
}

TEST_CASE("two machines with one host name are two hosts") {
  const auto two = topology_from({playing(kHere, "red"), playing(kAway, "red")}, 0);
  CHECK(two.hosts == Hosts{0, 1});
  CHECK(two.local_ranks == 1);
}

TEST_CASE("ranks that do not reach each other are on two machines, whatever their names say") {
  CHECK(topology_from({kHere, kSibling, kHere}, 0, Hosts{0, 1, 0}).hosts == Hosts{0, 1, 0});
  CHECK(topology_from({kHere, kAway}, 1, Hosts{0, 0}).is_one_host);
  const auto topology_beside = [](const std::string& machine) {
    const auto store = make_local_store();
    std::string place = describe_location("", "", "kolo-no-such-listener");
    const std::size_t line = place.find('\n') + 1;  // the line of the process
    place.replace(line, place.find('\n', line) - line, "a clone's");
    store->set("placement/0", place);
    store->set("machine/0", machine);
    return find_topology(*store, 1, 2, Clock::now() + std::chrono::seconds(60));
  };
  const Topology apart = topology_beside("0");
  CHECK((apart.hosts == Hosts{0, 1} && apart.local_ranks == 1 && !apart.is_one_host));
  for (const char* const text : {"", "2", "-1", "0 ", "one"})
    CHECK_THROWS_AS(topology_beside(text), Error);
}

// --- the choice of a transport ---

namespace {

bool has_ucx() {
  return std::ranges::any_of(transport_facts(), [](const TransportFact& fact) {
    return fact.name == "ucx" && fact.why_unusable.empty();
  });
}

using Hardware = std::vector<std::string>;

// The transport's name on rank 0 if every rank got one, otherwise the error on rank 0.
// `links`: by rank, the link layers of its host's RDMA ports.
std::string outcome_of(const std::string& transport, const std::vector<std::string>& host_ids,
                       const std::vector<Hardware>& links = {}) {
  const std::shared_ptr<Store> store = make_local_store();
  std::vector<std::string> outcomes(host_ids.size());
  std::vector<std::unique_ptr<Transport>> made(host_ids.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < host_ids.size(); ++rank) {
    threads.emplace_back([&, rank] {
      TransportRequest request;
      request.rank = static_cast<int>(rank);
      request.size = static_cast<int>(host_ids.size());
      request.store = store;
      request.deadline = Clock::now() + std::chrono::seconds(60);
      request.host_id = host_ids[rank];
      if (!links.empty()) request.rdma_links = links[rank];
      try {
        made[rank] = make_transport(transport, request);
        outcomes[rank] = made[rank]->name();
      } catch (const Error& error) {
        outcomes[rank] =
            std::string(error.code() == ErrorCode::kUnavailable ? "" : "not this: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& outcome : outcomes) CHECK(outcome == outcomes[0]);
  return outcomes[0];
}

}  // namespace

TEST_CASE("auto uses the network between hosts that are simulated on one machine") {
  CHECK(outcome_of("auto", {"red", "blue"}) == "tcp");
  CHECK(outcome_of("auto", {"red", "blue", "red"}) == "shm+tcp");
  CHECK(outcome_of("auto", {"red", "red"}) == "inproc");
}

TEST_CASE("auto uses UCX between hosts if all of them have RDMA hardware of one kind") {
  const std::string best = has_ucx() ? "ucx" : "tcp";
  const Hardware roce = {"Ethernet"};
  const Hardware infiniband = {"InfiniBand"};
  CHECK(outcome_of("auto", {"red", "blue"}, {roce, roce}) == best);
  CHECK(outcome_of("auto", {"red", "blue", "red"}, {roce, {"Ethernet", "InfiniBand"}, roce}) ==
        "shm+" + best);
  CHECK(outcome_of("auto", {"red", "blue", "red"}, {roce, {}, roce}) == "shm+tcp");
  CHECK(outcome_of("auto", {"red", "blue"}, {roce, infiniband}) == "tcp");
  CHECK(outcome_of("auto", {"red", "red"}, {roce, roce}) == "inproc");
}

TEST_CASE("two transports are joined by name, one within hosts and one between them") {
  CHECK(outcome_of("shm+tcp", {"red", "blue", "red"}) == "shm+tcp");
  CHECK(outcome_of("shm+tcp", {"red", "red"}) == "shm+tcp");
  for (const char* const name : {"tcp+shm", "shm+shm", "inproc+tcp", "shm+", "+tcp", "shm+pigeon"})
    CHECK_THROWS_WITH(resolve_transport(name), ContainsSubstring("two joined by +, as shm+tcp"));
}

TEST_CASE("each pair of ranks has the transport that joins it") {
  const std::shared_ptr<Store> store = make_local_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      TransportRequest request{rank, 3, store, Clock::now() + std::chrono::seconds(60), 0, 3};
      request.host_id = rank == 1 ? "blue" : "red";
      const auto transport = make_transport("auto", request);
      for (int peer = 0; peer < 3; ++peer) {
        if (peer != rank)
          CHECK(transport->name_to(peer) == (rank == 1 || peer == 1 ? "tcp" : "shm"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a transport that cannot connect two hosts reports this") {
  for (const std::string transport : {"inproc", "shm"}) {
    CHECK(outcome_of(transport, {"red", "red"}) == transport);
    CHECK_THAT(outcome_of(transport, {"red", "red", "blue"}),
               ContainsSubstring("rank 0 counts as host 'red', rank 2 as host 'blue'") &&
                   ContainsSubstring(transport + " does not reach"));
  }
  CHECK(outcome_of("tcp", {"red", "blue"}) == "tcp");
}

TEST_CASE("a transport for threads only rejects another process") {
  const auto store = make_local_store();
  for (int rank = 0; rank < 3; ++rank) store->set("asked/" + std::to_string(rank), "inproc");
  store->set("room", "another process\nhost\n1234 5678 ");
  std::string said;
  try {
    make_transport("inproc", {1, 3, store, Clock::now() + std::chrono::seconds(60), 0, 3});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    said = error.what();
  }
  CHECK(
      said ==
      "rank 1 is in a different process than rank 0: inproc connects threads of one process only; "
      "use shm or tcp");
}

}  // namespace kolo::test
