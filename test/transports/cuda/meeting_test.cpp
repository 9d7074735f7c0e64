// Ranks that meet over a played machine, and what all of them hear where one cannot.
#include "test/support/catch.h"
#include "test/transports/cuda/played_ranks.h"
#include "transports/cuda/driver.h"

using namespace kolo;
using namespace kolo::test;

namespace {

void check_all(const std::vector<std::string>& texts, const std::vector<std::string>& parts) {
  for (const std::string& text : texts) {
    for (const std::string& part : parts) CHECK_THAT(text, ContainsSubstring(part));
  }
}

}  // namespace

TEST_CASE("ranks on one device, on devices of their own and in one process meet and part") {
  for (const int devices : {1, 3}) {
    for (const bool is_one_process : {false, true}) {
      INFO(devices << " devices, one process: " << is_one_process);
      PlayedMachine machine(devices);
      auto ranks = make_played_ranks(machine, 3, [&](int rank, PlayedDriver&, auto& settings) {
        settings.device = rank % devices;
        if (is_one_process) settings.process = "the same";
      });
      CHECK(ranks[1].transport->name() == "cuda_ipc");
      CHECK(ranks[0].driver->calls("ipc_open") == (is_one_process ? 0 : 2));
      CHECK(ranks[0].transport->channel(1).stream() != nullptr);
      close_together(ranks);
      CHECK(machine.left_over().empty());
      CHECK(machine.violations().empty());
    }
  }
}

TEST_CASE("a rank without a driver, a device or memory is named by all") {
  PlayedMachine machine;
  check_all(errors_of(machine, 3,
                      [](int rank, PlayedDriver&, auto& settings) {
                        if (rank == 1) settings.device = 7;
                      }),
            {"rank 1 cannot use cuda_ipc", "no CUDA device 7"});
  check_all(errors_of(machine, 2,
                      [](int rank, PlayedDriver& driver, auto&) {
                        if (rank == 0) driver.fail("allocate", cuda::kOutOfMemory);
                      }),
            {"rank 0 cannot use cuda_ipc", "CUDA_ERROR_OUT_OF_MEMORY", "are free there"});
  machine.driver_version = 10020;
  check_all(errors_of(machine, 2, nullptr), {"version 10.2"});
  CHECK(machine.left_over().empty());
  CHECK(machine.violations().empty());
}

TEST_CASE("devices that cannot reach each other are refused by all, and so is IPC in a container") {
  PlayedMachine machine(2);
  machine.peers_reach = false;
  check_all(errors_of(machine, 2,
                      [](int rank, PlayedDriver&, auto& settings) { settings.device = rank; }),
            {"cannot reach device", "no peer access"});
  check_all(
      errors_of(machine, 2,
                [](int rank, PlayedDriver& driver, auto&) {
                  if (rank == 1) driver.fail("ipc_open", cuda::kNotSupported);
                }),
      {"rank 1 cannot use cuda_ipc", "cuIpcOpenMemHandle_v2 of rank 0's memory", "--ipc=host"});
  CHECK(machine.violations().empty());
}

TEST_CASE("ranks that were told different sizes are told so") {
  PlayedMachine machine;
  check_all(errors_of(machine, 2,
                      [](int rank, PlayedDriver&, auto& settings) {
                        if (rank == 1) settings.segment_bytes = 8192;
                      }),
            {"4096", "8192", "give the same to every rank"});
  CHECK(machine.left_over().empty());
}

TEST_CASE("whatever call of the driver fails while ranks meet, all ranks hear of it") {
  for (const char* function : {"device_name", "device_uuid", "retain_context", "push_context",
                               "register_host", "host_address", "ipc_handle"}) {
    INFO(function);
    PlayedMachine machine;
    check_all(errors_of(machine, 2,
                        [&](int rank, PlayedDriver& driver, auto&) {
                          if (rank == 1) driver.fail(function, 999);
                        }),
              {"rank 1 cannot use cuda_ipc", "the driver's error 999"});
    CHECK(machine.left_over().empty());
    CHECK(machine.violations().empty());
  }
}
