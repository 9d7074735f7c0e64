// Ranks that share a device and are processes, which map each other's memory.
#include <csignal>
#include <string>

#include "collectives/reduce/device/device.h"
#include "test/collectives/processes.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

bool has_device() {
  if (device::why_unusable().empty()) return true;
  WARN("skipped: " << device::why_unusable());
  return false;
}

void expect_right(int size, const std::string& what, const std::string& memory) {
  INFO(size << " ranks, " << what << ", " << memory << " memory");
  for (const ProcessOutcome& rank : run_processes(size, {KOLO_DEVICE_RANK, what, memory})) {
    INFO(rank.output);
    CHECK(rank.exit_code == 0);
  }
}

}  // namespace

TEST_CASE("ranks that share a device as processes call every collective") {
  if (!has_device()) return;
  for (const int size : {2, 3}) expect_right(size, "collectives", "device");
  // What cannot be mapped by others goes another way.
  for (const char* const memory : {"managed", "pooled"}) expect_right(2, "collectives", memory);
}

TEST_CASE("ranks that share a device as processes launch what they have captured") {
  if (!has_device()) return;
  for (const int size : {2, 3}) expect_right(size, "captured", "device");
  expect_right(2, "captured", "managed");
}

TEST_CASE("a killed rank of those that share a device is told to the others") {
  if (!has_device()) return;
  for (const int size : {2, 3}) {
    INFO(size << " ranks");
    const auto ranks = run_processes(size, {KOLO_DEVICE_RANK, "killed", "device"});
    CHECK(ranks.back().exit_code == 128 + SIGKILL);
    for (int rank = 0; rank + 1 < size; ++rank) {
      const ProcessOutcome& told = ranks[static_cast<std::size_t>(rank)];
      INFO(told.output);
      CHECK(told.exit_code == 3);
      CHECK(told.output.find("rank " + std::to_string(size - 1)) != std::string::npos);
    }
  }
}

}  // namespace kolo::test
