// Ranks as processes that share a device or have one each. They map each other's memory, or it is
// staged.
#include <csignal>
#include <string>
#include <vector>

#include "test/collectives/support/devices.h"
#include "test/collectives/support/processes.h"

namespace kolo::test {
namespace {

constexpr std::chrono::seconds kLimit{100};  // of a job

void expect_right(int size, const std::vector<std::string>& command) {
  std::string words;
  for (const std::string& word : command) words += " " + word;
  INFO(size << " ranks:" << words);
  for (const ProcessOutcome& rank : run_processes(size, command, {}, kLimit)) {
    INFO(rank.output);
    CHECK(rank.exit_code == 0);
  }
}

void expect_right(int size, const std::string& what, const std::string& memory,
                  const std::string& transport = "cuda_ipc", int devices = 1) {
  expect_right(size, {KOLO_DEVICE_RANK, what, memory, transport, std::to_string(devices)});
}

void sum_by_schedules(int size, int devices) {
  expect_right(size, {KOLO_DEVICE_SUM_RANK, "schedules", std::to_string(devices)});
}

// The last `hosts` ranks have no device.
void sum_by_communicators(int size, const std::string& transport, int hosts, int devices) {
  expect_right(size, {KOLO_DEVICE_SUM_RANK, "communicators", transport, std::to_string(hosts),
                      std::to_string(devices)});
}

void kill_last(int size, const std::string& transport) {
  INFO(size << " ranks, " << transport);
  const auto ranks =
      run_processes(size, {KOLO_DEVICE_RANK, "killed", "device", transport, "1"}, {}, kLimit);
  CHECK(ranks.back().exit_code == 128 + SIGKILL);
  for (int rank = 0; rank + 1 < size; ++rank) {
    const ProcessOutcome& told = ranks[static_cast<std::size_t>(rank)];
    INFO(told.output);
    CHECK(told.exit_code == 3);
    CHECK(told.output.find("rank " + std::to_string(size - 1)) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("ranks that share a device as processes get the host's sums on its streams") {
  if (!has_device()) return;
  for (const int size : {2, 3, 4}) sum_by_schedules(size, 1);
}

TEST_CASE("ranks that share a device as processes get the host's sums through communicators") {
  if (!has_device()) return;
  for (const char* const transport : {"auto", "shm", "tcp"})
    sum_by_communicators(3, transport, 0, 1);
  for (const char* const transport : {"auto", "tcp"}) sum_by_communicators(3, transport, 1, 1);
}

TEST_CASE("ranks with a device each as processes get the host's sums through communicators") {
  if (!has_several_devices()) return;
  const int devices = device::count();
  for (const int size : {devices, devices + 1}) sum_by_communicators(size, "auto", 0, devices);
}

TEST_CASE("ranks that share a device as processes call every collective") {
  if (!has_device()) return;
  for (const int size : {2, 3}) expect_right(size, "collectives", "device");
  // Memory that peers cannot map is staged.
  for (const char* const memory : {"managed", "pooled"}) expect_right(2, "collectives", memory);
}

TEST_CASE("processes on one device stage every collective") {
  if (!has_device()) return;
  for (const char* const transport : {"shm", "tcp"})
    expect_right(2, "collectives", "device", transport);
}

TEST_CASE("processes on one device call every collective with virtual memory") {
  if (!has_device()) return;
  expect_right(2, "collectives", "virtual");
}

TEST_CASE("ranks with a device each as processes call every collective") {
  if (!has_several_devices()) return;
  for (const char* const transport : {"auto", "tcp"})
    expect_right(device::count(), "collectives", "device", transport, device::count());
}

TEST_CASE("ranks that share a device as processes launch captured graphs") {
  if (!has_device()) return;
  for (const int size : {2, 3}) expect_right(size, "captured", "device");
  expect_right(2, "captured", "managed");
}

TEST_CASE("a killed rank is reported to the others that share its device") {
  if (!has_device()) return;
  for (const int size : {2, 3}) kill_last(size, "cuda_ipc");
  kill_last(2, "tcp");
}

}  // namespace kolo::test
