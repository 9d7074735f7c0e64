// Where the ranks of a launcher meet that sets neither KOLO_STORE nor a usable MASTER_PORT.
#include "transports/launch/meeting_point.h"

#include <future>
#include <string>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "test/transports/support/environment.h"
#include "transports/error.h"
#include "transports/launch/announcement.h"
#include "transports/posix/socket.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"

using namespace kolo;
using namespace kolo::test;

namespace {

std::map<std::string, std::string> srun_variables(const std::string& nodes, int node_count) {
  return {{"SLURM_PROCID", "1"},          {"SLURM_STEP_NUM_TASKS", "2"},
          {"SLURM_STEP_NODELIST", nodes}, {"SLURM_STEP_NUM_NODES", std::to_string(node_count)},
          {"SLURM_JOB_ID", "7"},          {"SLURM_STEP_ID", "0"}};
}

std::optional<StorePlaces> meeting_point_of(std::map<std::string, std::string> variables) {
  const Environment environment(std::move(variables));
  return launch::meeting_point(read_settings());
}

}  // namespace

TEST_CASE("the first host of a list of Slurm is found") {
  CHECK(launch::first_host("node1") == "node1");
  CHECK(launch::first_host("node1,node2") == "node1");
  CHECK(launch::first_host("node[01-04,7],gpu[1-2]") == "node01");
  CHECK(launch::first_host("node[7,9-12]-ib") == "node7-ib");
  CHECK(launch::first_host("rack[0-1]node[03-4]") == "rack0node03");
  CHECK(launch::first_host("node[5]") == "node5");
  CHECK(launch::first_host("node[12") == "node12");
  CHECK(launch::first_host("node[") == "node");
  CHECK(launch::first_host("").empty());
}

TEST_CASE("the first pod of a Job is named like the others, with index 0") {
  CHECK(launch::first_pod("train-3.kolo.default.svc.cluster.local", 3) ==
        "train-0.kolo.default.svc.cluster.local");
  CHECK(launch::first_pod("train-13", 13) == "train-0");
  CHECK(launch::first_pod("train-3.kolo", 13).empty());
  CHECK(launch::first_pod("node7", 7).empty());
}

TEST_CASE("the ranks of a step of srun meet at its first host, at ports of the step") {
  const auto at = meeting_point_of(srun_variables("node[04-05]", 2));
  REQUIRE(at);
  CHECK(at->places.front().host == "node04");
  auto other_step = srun_variables("node[04-05]", 2);
  other_step["SLURM_STEP_ID"] = "1";
  CHECK(meeting_point_of(other_step)->places.front().port != at->places.front().port);
  CHECK(meeting_point_of(other_step)->job != at->job);
  CHECK(meeting_point_of(srun_variables("node04", 1))->places.front().host == "127.0.0.1");
}

TEST_CASE("a pod of an indexed Job has its index as rank") {
  const Environment environment({{"JOB_COMPLETION_INDEX", "3"}, {"WORLD_SIZE", "4"}});
  const auto who = launch_environment();
  CHECK((who.rank == 3 && who.size == 4 && who.local_rank == 0));
  const Environment independent(std::map<std::string, std::string>{{"JOB_COMPLETION_INDEX", "3"}});
  CHECK(launch_environment().size == 1);
}

TEST_CASE("the ranks of torchrun meet at a free port beside its agent's") {
  // The agent's port, and the next one, belong to programs that accept nothing and say nothing.
  posix::Descriptor agent, silent;
  std::uint16_t port = 0;
  while (!silent.is_open()) {
    agent = posix::listen_on("127.0.0.1", 0);
    port = posix::local_address(agent).port();
    try {
      silent = posix::listen_on("127.0.0.1", static_cast<std::uint16_t>(port + 1));
    } catch (const Error&) {
    }
  }
  const Environment environment({{"RANK", "0"},
                                 {"WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", std::to_string(port)},
                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                 {"TORCHELASTIC_RUN_ID", "none"}});
  auto other = std::async(std::launch::async, [] {
    return store_from_environment({1, 2, 1, 2}, in_seconds(20));
  });
  const auto rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  rank_0->set("key", "value");
  CHECK(other.get()->get("key", in_seconds(20)) == "value");
}

TEST_CASE("a store refuses clients of another job") {
  const TcpStoreServer server("127.0.0.1", 0, 2, "job 1");
  const StorePlaces::Place place{"127.0.0.1", server.port()};
  CHECK(connect_tcp_store({{place}, "job 1"}, in_seconds(20)) != nullptr);
  try {
    connect_tcp_store({{place}, "job 2"}, in_seconds(0.1), 0);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("another job"));
  }
}

TEST_CASE("announced places are read as they were written") {
  const StorePlaces at{{{"10.9.0.1", 4711}, {"fd00::1", 4711}}, launch::random_name()};
  const StorePlaces read = launch::parse_places(launch::to_text(at));
  CHECK(read.job == at.job);
  REQUIRE(read.places.size() == 2);
  CHECK((read.places[1].host == "fd00::1" && read.places[1].port == 4711));
  for (const char* text : {"", "job", "job,4711", "job,x,10.9.0.1", "job,99999,10.9.0.1"}) {
    INFO(text);
    CHECK_THROWS_AS(launch::parse_places(text), Error);
  }
}
