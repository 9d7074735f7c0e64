// What the environment says, and what it may not say.
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/environment.h"
#include "test/transports/store_table.h"
#include "transports/error.h"
#include "transports/posix/cores.h"
#include "transports/posix/identity.h"
#include "transports/posix/socket.h"
#include "transports/settings.h"

using namespace kolo;
using namespace kolo::test;

namespace {

Settings settings_of(const std::map<std::string, std::string>& variables) {
  return read_settings([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("an empty environment gives the defaults") {
  const Settings settings = settings_of({});
  CHECK_FALSE(settings.rank);
  CHECK(settings.timeout == std::chrono::seconds(30));
  CHECK(settings.wait == WaitKind::kAuto);
  CHECK(settings.tcp_port_low == 0);
  CHECK(settings.segment_bytes == 0);
  CHECK(settings.shm_single_copy_bytes == 8192);
  CHECK(settings_of({{"RANK", ""}}).rank == std::nullopt);
}

TEST_CASE("every setting is read") {
  const Settings settings = settings_of({{"RANK", "3"},
                                         {"WORLD_SIZE", "8"},
                                         {"LOCAL_RANK", "1"},
                                         {"LOCAL_WORLD_SIZE", "2"},
                                         {"KOLO_STORE", "tcp://a:1"},
                                         {"MASTER_ADDR", "node"},
                                         {"MASTER_PORT", "29500"},
                                         {"KOLO_TIMEOUT_MS", "1500"},
                                         {"KOLO_WAIT", "block"},
                                         {"KOLO_SPIN_US", "7"},
                                         {"KOLO_TRANSPORT", "tcp"},
                                         {"KOLO_HOST_ID", "rack-1"},
                                         {"KOLO_SEGMENT_BYTES", "4096"},
                                         {"KOLO_SHAPE", "1Gbit,1ms"},
                                         {"KOLO_FAULT", "storm"},
                                         {"KOLO_TRACE", "/tmp/run"},
                                         {"KOLO_TIMELINE", "t.json"},
                                         {"KOLO_TCP_HOST", "::1"},
                                         {"KOLO_TCP_PORTS", "100-200"},
                                         {"KOLO_TCP_CONGESTION", "cubic"},
                                         {"KOLO_TCP_BUFFERS", "8192"},
                                         {"KOLO_TCP_LANES", "4"},
                                         {"KOLO_HELLO_TIMEOUT_MS", "9"},
                                         {"KOLO_PLUGIN_SECONDS", "7"},
                                         {"KOLO_CUDA_DEVICE", "3"}});
  CHECK(settings.rank == 3);
  CHECK(settings.size == 8);
  CHECK(settings.local_rank == 1);
  CHECK(settings.local_size == 2);
  CHECK(settings.store == "tcp://a:1");
  CHECK(settings.master_host == "node");
  CHECK(settings.master_port == 29500);
  CHECK(settings.timeout == std::chrono::milliseconds(1500));
  CHECK(settings.wait == WaitKind::kBlock);
  CHECK(settings.spin == std::chrono::microseconds(7));
  CHECK(settings.transport == "tcp");
  CHECK(settings.host_id == "rack-1");
  CHECK(settings.segment_bytes == 4096);
  CHECK(settings.shape == "1Gbit,1ms");
  CHECK(settings.fault == "storm");
  CHECK(settings.trace == "/tmp/run");
  CHECK(settings.tcp_host == "::1");
  CHECK((settings.tcp_port_low == 100 && settings.tcp_port_high == 200));
  CHECK(settings.tcp_congestion == "cubic");
  CHECK(settings.tcp_buffer_bytes == 8192);
  CHECK(settings.tcp_lanes == 4);
  CHECK(settings.hello_timeout == std::chrono::milliseconds(9));
  CHECK(settings.plugin_limit == std::chrono::seconds(7));
  CHECK(settings.cuda_device == 3);
  CHECK(settings_of({{"KOLO_TCP_PORTS", "77"}}).tcp_port_high == 77);
}

TEST_CASE("MPI's launchers and srun say which rank a process is, where nobody else does") {
  using Variables = std::map<std::string, std::string>;
  const Variables launched[] = {
      {{"OMPI_COMM_WORLD_RANK", "3"},
       {"OMPI_COMM_WORLD_SIZE", "4"},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
      {{"MV2_COMM_WORLD_RANK", "3"},
       {"MV2_COMM_WORLD_SIZE", "4"},
       {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
       {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}},
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
      {{"SLURM_PROCID", "3"},
       {"SLURM_STEP_NUM_TASKS", "4"},
       {"SLURM_NTASKS", "9"},
       {"SLURM_LOCALID", "1"}}};
  for (Variables variables : launched) {
    const std::string first = variables.begin()->first;
    INFO(first);
    const Settings settings = settings_of(variables);
    CHECK(settings.rank == 3);
    CHECK(settings.size == 4);
    CHECK(settings.local_rank == 1);
    CHECK(settings.local_size.value_or(2) == 2);
    variables["RANK"] = "0";
    CHECK(settings_of(variables).rank == 0);
    CHECK_FALSE(settings_of(variables).size);  // as it was forgotten
  }
  CHECK_FALSE(settings_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).rank);
  CHECK_FALSE(settings_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).rank);  // a batch script
  CHECK(settings_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).size_variable == "PMI_SIZE");
}

TEST_CASE("bytes may be in powers of 1024") {
  for (const char* text : {"65536", "64K", "64k", "64KiB"}) {
    INFO(text);
    CHECK(settings_of({{"KOLO_SEGMENT_BYTES", text}}).segment_bytes == 65536);
  }
  CHECK(settings_of({{"KOLO_SEGMENT_BYTES", "1G"}}).segment_bytes == std::size_t{1} << 30);
  CHECK(settings_of({{"KOLO_SHM_SINGLE_COPY", "2M"}}).shm_single_copy_bytes == 2u << 20);
  CHECK(settings_of({{"KOLO_TCP_BUFFERS", "4M"}}).tcp_buffer_bytes == 4 << 20);
}

TEST_CASE("an unreadable setting is refused by name") {
  const std::map<std::string, std::vector<std::string>> wrong = {
      {"RANK", {"-1", "x", "1x", "99999999999"}},
      {"WORLD_SIZE", {"0", "two"}},
      {"MASTER_PORT", {"0", "65536", "http"}},
      {"KOLO_TIMEOUT_MS", {"0", "30s", "-1", "2147483648"}},
      {"KOLO_WAIT", {"sleep"}},
      {"KOLO_SPIN_US", {"-1"}},
      {"KOLO_HOST_ID", {"two words", "\n", std::string(65, 'x')}},
      {"KOLO_SEGMENT_BYTES", {"1", "64KB", "64B", "0.5M", "2G", "-64K", "K", "99999999999G"}},
      {"KOLO_SHAPE", {"1Gbps", "fast", "1Gbit, 1ms"}},
      {"KOLO_FAULT", {"explode", "die"}},
      {"KOLO_TCP_PORTS", {"0", "5-", "-5", "9-8", "1-70000"}},
      {"KOLO_TCP_BUFFERS", {"4095", "3K", "64 K", "-1"}},
      {"KOLO_TCP_LANES", {"0", "17", "two"}},
      {"KOLO_HELLO_TIMEOUT_MS", {"0"}},
      {"KOLO_PLUGIN_SECONDS", {"0", "86401", "soon"}},
      {"KOLO_CUDA_DEVICE", {"-1", "GPU-0"}}};
  for (const auto& row : wrong) {
    const std::string& name = row.first;
    for (const auto& value : row.second) {
      INFO(name << "=" << value);
      CHECK_THAT(refusal_of([&] {
                   settings_of({{name, value}});
                 }),
                 ContainsSubstring(name + "='" + value + "'"));
    }
  }
}

TEST_CASE("a variable that looks like a setting and is none is named, with the one that is meant") {
  const auto said_of = [](std::vector<std::string> variables) {
    std::string text;
    for (const UnknownSetting& unknown : unknown_settings(variables))
      text += describe(unknown) + '\n';
    return text;
  };
  const std::string none = " is no setting of kolo's, and nothing reads it";
  for (const auto& [name, meant] :
       std::map<std::string, std::string>{{"KOLO_SEGMENT_BYTE", "KOLO_SEGMENT_BYTES"},
                                          {"KOLO_TIMEOUT", "KOLO_TIMEOUT_MS"},
                                          {"KOLO_SEGEMENT_BYTES", "KOLO_SEGMENT_BYTES"},
                                          {"KOLO_TCP_PORT", "KOLO_TCP_PORTS"},
                                          {"KOLO_TRANSPROT", "KOLO_TRANSPORT"},
                                          {"KOLO_TUNNING", "KOLO_TUNING"},
                                          {"KOLO_WAITS", "KOLO_WAIT"}}) {
    CHECK(said_of({name + "=4"}) == name + none + "; is " + meant + " meant?\n");
  }
  CHECK(said_of({"KOLO_LANGUAGE=9", "KOLO_COLOR=red", "KOLO_=1"}) ==
        "KOLO_" + none + "\nKOLO_COLOR" + none + "\nKOLO_LANGUAGE" + none + "\n");
  CHECK(said_of({"KOLO_WAITS=", "KOLO_WAITS", "KOLOWAIT=1", "WAIT=1", "RANKS=2", "=", ""}).empty());
}

TEST_CASE("what any part of kolo reads is known") {
  std::vector<std::string> variables = {"KOLO_TEST_DATA=/data", "KOLO_DEPS=/deps",
                                        "KOLO_BENCH_NETWORK=1Gbit", "KOLO_TEST_PROGRAM=7"};
  read_settings([&](const char* name) -> std::optional<std::string> {
    variables.push_back(std::string(name) + "=1");
    return std::nullopt;
  });
  CHECK(unknown_settings(variables).empty());
}

TEST_CASE("a process that nobody launched is alone") {
  const Environment environment({});
  const auto who = launch_environment();
  CHECK((who.rank == 0 && who.size == 1 && who.local_rank == 0 && who.local_size == 1));
  CHECK(store_from_environment(who, in_seconds(1)) != nullptr);
}

TEST_CASE("a launcher's environment says who this is") {
  const Environment environment(
      {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}});
  const auto who = launch_environment();
  CHECK((who.rank == 5 && who.size == 8 && who.local_rank == 1 && who.local_size == 4));
}

TEST_CASE("a launcher need not say how many ranks its host has") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment({{"RANK", "0"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "0"},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", std::to_string(port)}});
  const auto who = launch_environment();
  CHECK((who.rank == 0 && who.size == 8 && who.local_rank == 0 && who.local_size == 0));
  CHECK(store_from_environment(who, in_seconds(20)) != nullptr);
}

TEST_CASE("a half-set or impossible environment is refused by name") {
  const auto refusal = [](std::map<std::string, std::string> variables) {
    const Environment environment(std::move(variables));
    return refusal_of([] { launch_environment(); });
  };
  CHECK_THAT(refusal({{"RANK", "0"}}), ContainsSubstring("RANK is set but WORLD_SIZE is not"));
  CHECK_THAT(refusal({{"WORLD_SIZE", "2"}}),
             ContainsSubstring("WORLD_SIZE is set but RANK is not"));
  CHECK_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
             ContainsSubstring("RANK=2 must be less than WORLD_SIZE=2"));
  CHECK_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "1"}}),
             ContainsSubstring("LOCAL_RANK is not"));
  CHECK_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}),
             ContainsSubstring("LOCAL_RANK=2 must be less than WORLD_SIZE=2"));
  CHECK_THAT(
      refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}}),
      ContainsSubstring("LOCAL_RANK=1"));
}

TEST_CASE("a job without a place to meet is told how to name one") {
  const auto refusal = [](std::map<std::string, std::string> variables) {
    const Environment environment(std::move(variables));
    return refusal_of([] { store_from_environment({0, 2, 0, 2}, in_seconds(1)); });
  };
  CHECK_THAT(refusal({}), ContainsSubstring("kolo-run"));
  CHECK_THAT(refusal({{"MASTER_ADDR", "127.0.0.1"}}), ContainsSubstring("MASTER_PORT is not"));
  CHECK_THAT(refusal({{"KOLO_STORE", "http://x"}}),
             ContainsSubstring("neither tcp://HOST:PORT nor file:PATH"));
  CHECK_THAT(refusal({{"KOLO_STORE", "tcp://host"}}), ContainsSubstring("is not tcp://HOST:PORT"));
  CHECK_THAT(refusal({{"KOLO_STORE", "tcp://host:0"}}),
             ContainsSubstring("is not tcp://HOST:PORT"));
}

TEST_CASE("a store that is served elsewhere is found by its address, over IPv4 and IPv6") {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    const TcpStoreServer server(host, 0);
    const Environment environment(
        {{"KOLO_STORE", "tcp://" + posix::host_and_port(host, server.port())}});
    const auto store = store_from_environment({1, 2, 1, 2}, in_seconds(20));
    store->set("key", "value");
    CHECK(store->describe() == "the store at " + posix::host_and_port(host, server.port()));
  }
}

TEST_CASE("a store in a file is found by its path") {
  const TemporaryFile file;
  const Environment environment({{"KOLO_STORE", "file:" + file.path()}});
  const auto a = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  const auto b = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  a->set("key", "value");
  CHECK(b->get("key", in_seconds(20)) == "value");
}

TEST_CASE("rank 0 serves at MASTER_ADDR, and the server outlives its last other client") {
  // A port that was free a moment ago: here the test has to choose, as a user would.
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto rank_1 = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  rank_0->join(0);
  rank_1->join(1);
  rank_0->set("key", "value");
  CHECK(rank_1->get("key", in_seconds(20)) == "value");
  rank_1->leave();
  rank_0->leave();
  rank_0.reset();
  CHECK_FALSE(rank_1->failure());  // it ended in good order
}

TEST_CASE("who asks again gets the store that is in use, with one server and one membership") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto first = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto again = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto other = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  CHECK(first == again);
  CHECK(first != other);
  first->join(0);
  again->join(0);
  other->join(1);
  first->leave();  // one of two communicators has ended: this rank is still there
  first.reset();
  again->set("key", "value");
  CHECK(other->get("key", in_seconds(20)) == "value");
  CHECK_FALSE(other->failure());
  other->leave();
  again->leave();
}

TEST_CASE("a rank comes again before rank 0 has let go of the store that both had") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto rank_1 = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  for (int round = 0; round < 3; ++round) {
    rank_0->join(0, "world");
    rank_1->join(1, "world");
    rank_1->leave();
    rank_1.reset();
    rank_1 = store_from_environment({1, 2, 1, 2}, in_seconds(20));
    rank_1->join(1, "world");
    rank_0->leave();
    rank_0.reset();
    rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
    const std::string key = "of round " + std::to_string(round);
    rank_0->set(key, "value");
    CHECK(rank_1->get(key, in_seconds(20)) == "value");
    rank_1->leave();
  }
  CHECK_FALSE(rank_0->failure());
}

TEST_CASE("after a failure, or with another size, rank 0 serves anew at the same port") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto store = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  store->set("key", "of the first");
  CHECK(store->post_failure("the first job has failed") == "the first job has failed");
  store.reset();
  store = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  CHECK_FALSE(store->failure());
  CHECK_FALSE(store->try_get("key"));
  store->set("key", "of the second");
  store.reset();
  store = store_from_environment({0, 3, 0, 3}, in_seconds(20));
  CHECK_FALSE(store->try_get("key"));
}

TEST_CASE("a process that rank 0 has forked ends, and leaves the store to it") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  store_from_environment({0, 2, 0, 2}, in_seconds(20)).reset();
  const pid_t child = ::fork();
  if (child == 0) std::exit(7);  // what is static goes
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  const auto store = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  store->set("key", "value");
  CHECK(store->try_get("key") == "value");
}

TEST_CASE("a port in use is said to be") {
  const TcpStoreServer first("127.0.0.1", 0);
  try {
    const TcpStoreServer second("127.0.0.1", first.port());
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("port " + std::to_string(first.port())) &&
                                 ContainsSubstring("in use"));
  }
}

TEST_CASE("a second rank 0 is told that there is one") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  const auto rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  rank_0->join(0, "world");
  try {
    store_from_environment({0, 3, 0, 3}, in_seconds(20));  // not the one that is in use
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("rank 0: another process serves a store") &&
                                 ContainsSubstring("two processes have RANK=0"));
  }
  CHECK_FALSE(rank_0->failure());  // which may be another job's
  rank_0->leave();
}

TEST_CASE("a rank 0 whose port is another program's is told so") {
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"},
       {"MASTER_PORT", std::to_string(posix::local_address(listener).port())}});
  try {
    store_from_environment({0, 2, 0, 2}, in_seconds(20));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("another program has it"));
  }
}

TEST_CASE(
    "a rank 0 that does not reach its own store is told of its address, not to start itself") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "no host is called so"}, {"MASTER_PORT", std::to_string(port)}});
  try {
    store_from_environment({0, 2, 0, 2}, in_seconds(0.2));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("rank 0 serves the store of the job") &&
                                 ContainsSubstring("correct MASTER_ADDR, to a name or an address "
                                                   "of this host, " +
                                                   posix::host_name()) &&
                                 !ContainsSubstring("start rank 0"));
  }
}

TEST_CASE(
    "a store that nobody serves is named, with how long it was waited for and by whom named") {
  const auto port = std::to_string(posix::local_address(posix::listen_on("127.0.0.1", 0)).port());
  const auto said = [](std::map<std::string, std::string> variables) {
    const Environment environment(std::move(variables));
    try {
      store_from_environment({1, 2, 1, 2}, in_seconds(0.2));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kDeadline);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const auto place = ContainsSubstring("s for the store at 127.0.0.1:" + port);
  CHECK_THAT(said({{"KOLO_STORE", "tcp://127.0.0.1:" + port}}),
             place && ContainsSubstring("correct KOLO_STORE") && !ContainsSubstring("MASTER_"));
  CHECK_THAT(said({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}}),
             place && ContainsSubstring("correct MASTER_ADDR and MASTER_PORT") &&
                 !ContainsSubstring("KOLO_STORE"));
}

TEST_CASE("a rank that finds another program at the store's port says who it is") {
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  try {
    store_from_environment({1, 2, 1, 2}, in_seconds(0.2));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("rank 1: waited ") &&
                                 ContainsSubstring("rank 0, which serves it, hangs") &&
                                 ContainsSubstring("another program seems to own that port") &&
                                 ContainsSubstring("choose another MASTER_PORT"));
  }
}

TEST_CASE("every variable that is read is in the README's table") {
  std::ifstream file(KOLO_TRANSPORTS_README);
  std::string table;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| ")) table += line + '\n';
  }
  std::set<std::string> names;
  read_settings([&](const char* name) -> std::optional<std::string> {
    names.insert(name);
    return std::nullopt;
  });
  CHECK(names.size() > 10);
  for (const std::string& name : names) {
    INFO(name);
    CHECK(table.find(name) != std::string::npos);
  }
}

TEST_CASE("a cgroup's quota is read as cores") {
  CHECK_FALSE(posix::parse_cpu_max("max 100000"));
  CHECK(posix::parse_cpu_max("150000 100000") == 1.5);
  CHECK_FALSE(posix::parse_cpu_max(""));
  CHECK_FALSE(posix::parse_cpu_max("100000"));
  CHECK_FALSE(posix::parse_cpu_max("100000 0"));
}
