// Settings from environment variables, and their errors.
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
#include "test/transports/support/environment.h"
#include "transports/posix/host/cores.h"
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
  CHECK(settings.cuda_device == 3);
  CHECK(settings_of({{"KOLO_TCP_PORTS", "77"}}).tcp_port_high == 77);
}

TEST_CASE("the variables of MPI launchers and srun give the rank if RANK is not set") {
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
    CHECK_FALSE(settings_of(variables).size);  // it was forgotten
  }
  CHECK_FALSE(settings_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).rank);
  CHECK_FALSE(settings_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).rank);  // a batch script
  CHECK(settings_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).size_variable == "PMI_SIZE");
}

TEST_CASE("sizes may use powers of 1024") {
  for (const char* text : {"65536", "64K", "64k", "64KiB"}) {
    INFO(text);
    CHECK(settings_of({{"KOLO_SEGMENT_BYTES", text}}).segment_bytes == 65536);
  }
  CHECK(settings_of({{"KOLO_SEGMENT_BYTES", "1G"}}).segment_bytes == std::size_t{1} << 30);
  CHECK(settings_of({{"KOLO_SHM_SINGLE_COPY", "2M"}}).shm_single_copy_bytes == 2u << 20);
  CHECK(settings_of({{"KOLO_TCP_BUFFERS", "4M"}}).tcp_buffer_bytes == 4 << 20);
}

TEST_CASE("the error for an invalid setting names it") {
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

TEST_CASE("a misspelled setting is reported with the name of the intended one") {
  const auto said_of = [](std::vector<std::string> variables) {
    std::string text;
    for (const UnknownSetting& unknown : unknown_settings(variables))
      text += describe(unknown) + '\n';
    return text;
  };
  const std::string none = " is not a setting of kolo, and nothing reads it";
  for (const auto& [name, meant] :
       std::map<std::string, std::string>{{"KOLO_SEGMENT_BYTE", "KOLO_SEGMENT_BYTES"},
                                          {"KOLO_TIMEOUT", "KOLO_TIMEOUT_MS"},
                                          {"KOLO_SEGEMENT_BYTES", "KOLO_SEGMENT_BYTES"},
                                          {"KOLO_TCP_PORT", "KOLO_TCP_PORTS"},
                                          {"KOLO_TRANSPROT", "KOLO_TRANSPORT"},
                                          {"KOLO_TUNNING", "KOLO_TUNING"},
                                          {"KOLO_WAITS", "KOLO_WAIT"}}) {
    CHECK(said_of({name + "=4"}) == name + none + "; did you mean " + meant + "?\n");
  }
  CHECK(said_of({"KOLO_LANGUAGE=9", "KOLO_COLOR=red", "KOLO_=1"}) ==
        "KOLO_" + none + "\nKOLO_COLOR" + none + "\nKOLO_LANGUAGE" + none + "\n");
  CHECK(said_of({"KOLO_WAITS=", "KOLO_WAITS", "KOLOWAIT=1", "WAIT=1", "RANKS=2", "=", ""}).empty());
}

TEST_CASE("unknown_settings() knows all variables that kolo reads") {
  std::vector<std::string> variables = {"KOLO_TEST_DATA=/data", "KOLO_DEPS=/deps",
                                        "KOLO_BENCH_NETWORK=1Gbit", "KOLO_TEST_PROGRAM=7"};
  read_settings([&](const char* name) -> std::optional<std::string> {
    variables.push_back(std::string(name) + "=1");
    return std::nullopt;
  });
  CHECK(unknown_settings(variables).empty());
}

TEST_CASE("every variable that kolo reads is in a README's table") {
  std::string table;
  for (const char* path : {KOLO_TRANSPORTS_README, KOLO_LAUNCH_README}) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("| ")) table += line + '\n';
    }
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
