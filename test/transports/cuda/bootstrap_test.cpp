// Bootstrap of ranks over a fake machine, and the errors on all ranks if one rank fails.
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_ranks.h"
#include "test/transports/store/forwarding_store.h"
#include "transports/cuda/driver.h"
#include "transports/cuda/peer_access.h"

using namespace kolo;
using namespace kolo::test;

namespace {

void check_all(const std::vector<std::string>& texts, const std::vector<std::string>& parts) {
  for (const std::string& text : texts) {
    for (const std::string& part : parts) CHECK_THAT(text, ContainsSubstring(part));
  }
}

// Store that changes every endpoint address between its publication and its readers.
class TearingStore final : public ForwardingStore {
 public:
  using Tear = std::function<std::string(const std::string& address)>;
  explicit TearingStore(Tear tear) : tear_(std::move(tear)) {}

  std::string get(std::string_view key, Deadline deadline) override {
    std::string value = ForwardingStore::get(key, deadline);
    return key.starts_with("address/") ? tear_(value) : value;
  }

 private:
  const Tear tear_;
};

// Both ranks report the other one's unreadable endpoint address, without other errors or leaks.
void check_unreadable(const TearingStore::Tear& tear) {
  FakeMachine machine;
  const auto texts = errors_of(machine, 2, nullptr, std::make_shared<TearingStore>(tear));
  REQUIRE(texts.size() == 2);
  CHECK_THAT(texts[0], ContainsSubstring("rank 1 published an unreadable endpoint address"));
  CHECK_THAT(texts[1], ContainsSubstring("rank 0 published an unreadable endpoint address"));
  CHECK_THAT(texts[0], ContainsSubstring("run the same build of kolo on every rank"));
  CHECK(machine.violations().empty());
}

}  // namespace

TEST_CASE("ranks on one device, on several devices and in one process connect and close") {
  for (const int devices : {1, 3}) {
    for (const bool is_one_process : {false, true}) {
      INFO(devices << " devices, one process: " << is_one_process);
      FakeMachine machine(devices);
      auto ranks = make_fake_ranks(machine, 3, [&](int rank, FakeDriver&, auto& settings) {
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

TEST_CASE("a rank without a driver, a device or memory is named by all ranks") {
  FakeMachine machine;
  check_all(errors_of(machine, 3,
                      [](int rank, FakeDriver&, auto& settings) {
                        if (rank == 1) settings.device = 7;
                      }),
            {"rank 1 cannot use cuda_ipc", "no CUDA device 7"});
  check_all(errors_of(machine, 2,
                      [](int rank, FakeDriver& driver, auto&) {
                        if (rank == 0) driver.fail("allocate", cuda::kOutOfMemory);
                      }),
            {"rank 0 cannot use cuda_ipc", "CUDA_ERROR_OUT_OF_MEMORY", "are free there"});
  machine.driver_version = 10020;
  check_all(errors_of(machine, 2, nullptr), {"version 10.2"});
  CHECK(machine.left_over().empty());
  CHECK(machine.violations().empty());
}

TEST_CASE("all ranks refuse devices that cannot reach each other, and blocked IPC in a container") {
  FakeMachine machine(2);
  machine.peers_reach = false;
  check_all(
      errors_of(machine, 2, [](int rank, FakeDriver&, auto& settings) { settings.device = rank; }),
      {"cannot reach device", "no peer access"});
  check_all(
      errors_of(machine, 2,
                [](int rank, FakeDriver& driver, auto&) {
                  if (rank == 1) driver.fail("ipc_open", cuda::kNotSupported);
                }),
      {"rank 1 cannot use cuda_ipc", "cuIpcOpenMemHandle_v2 of rank 0's memory", "--ipc=host"});
  CHECK(machine.violations().empty());
}

TEST_CASE("all ranks report the same first pair of devices that cannot reach each other") {
  const auto why = [](std::vector<std::string> lines) { return cuda::why_no_peer_access(lines); };
  CHECK(why({"a b", "b a", "a b"}) == "");
  CHECK(why({"a", "a"}) == "");
  CHECK_THAT(why({"a b", "b"}),
             ContainsSubstring("the device of rank 1 does not reach that of rank 0"));
  CHECK_THAT(why({"aa b", "b a"}),
             ContainsSubstring("the device of rank 1 does not reach that of rank 0"));
  CHECK(why({"a", "", "b"}) == "rank 1 has no device");
  CHECK(why({}) == "no rank has a device");
}

TEST_CASE("ranks of one process get an error if peer access between their devices fails") {
  FakeMachine machine(2);
  check_all(errors_of(machine, 2,
                      [](int rank, FakeDriver& driver, auto& settings) {
                        settings.device = rank;
                        settings.process = "the same";
                        if (rank == 1) driver.fail("enable_peer_access", 999);
                      }),
            {"rank 1 cannot use cuda_ipc", "cuCtxEnablePeerAccess on device 1",
             "the driver's error 999"});
  CHECK(machine.left_over().empty());
  CHECK(machine.violations().empty());
}

TEST_CASE("ranks with different segment sizes get an error") {
  FakeMachine machine;
  check_all(errors_of(machine, 2,
                      [](int rank, FakeDriver&, auto& settings) {
                        if (rank == 1) settings.segment_bytes = 8192;
                      }),
            {"4096", "8192", "give the same to every rank"});
  CHECK(machine.left_over().empty());
}

TEST_CASE("a failed driver call during the bootstrap is reported by all ranks") {
  for (const char* function : {"device_name", "device_uuid", "retain_context", "push_context",
                               "register_host", "host_address", "ipc_handle"}) {
    INFO(function);
    FakeMachine machine;
    check_all(errors_of(machine, 2,
                        [&](int rank, FakeDriver& driver, auto&) {
                          if (rank == 1) driver.fail(function, 999);
                        }),
              {"rank 1 cannot use cuda_ipc", "the driver's error 999"});
    CHECK(machine.left_over().empty());
    CHECK(machine.violations().empty());
  }
}

TEST_CASE("an empty, foreign, cut or changed endpoint address is reported as unreadable") {
  check_unreadable([](const std::string&) { return ""; });
  check_unreadable([](const std::string&) { return "GET / HTTP/1.1\r\n\r\n"; });
  check_unreadable(
      [](const std::string& address) { return address.substr(0, address.size() / 2); });
  check_unreadable([](const std::string& address) { return address + "0"; });
  check_unreadable([](std::string address) {
    address[address.find_last_of(' ') + 1] = 'z';  // in the handle
    return address;
  });
  check_unreadable([](const std::string& address) {
    return address.substr(0, address.find_last_of(' ') + 3);  // a handle of one byte
  });
}
