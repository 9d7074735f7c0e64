// The end of a rank in good order, while its peer's process does not make progress.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/ofi/patience.h"
#include "transports/ofi/transport.h"

namespace kolo {

namespace {

using namespace std::chrono_literals;

constexpr int kCommunicators = 4;
constexpr const char* kPort = "KOLO_TEST_SILENT_PEER_PORT";

using Transports = std::vector<std::unique_ptr<Transport>>;

Transports make_all(int rank, std::uint16_t port) {
  const Deadline deadline = Clock::now() + 60s;
  const std::shared_ptr<Store> store = connect_tcp_store("127.0.0.1", port, deadline);
  Transports all;
  for (int i = 0; i < kCommunicators; ++i) {
    all.push_back(
        make_ofi({rank, 2, prefixed(store, std::to_string(i) + "/"), deadline, 0, 2}, {}));
  }
  return all;
}

// This program again, as a process that runs the hidden test below.
class SilentPeer {
 public:
  explicit SilentPeer(std::uint16_t port) {
    ::setenv(kPort, std::to_string(port).c_str(), 1);
    std::array<const char*, 3> words{"peer", "[.silent_peer]", nullptr};
    const int error = ::posix_spawn(&process_, "/proc/self/exe", nullptr, nullptr,
                                    const_cast<char* const*>(words.data()), environ);
    ::unsetenv(kPort);
    REQUIRE(error == 0);
  }
  ~SilentPeer() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_ = 0;
};

}  // namespace

TEST_CASE("a peer that meets all and then makes no progress", "[.silent_peer]") {
  const char* const port = std::getenv(kPort);
  if (port == nullptr) return;
  const Transports all = make_all(1, static_cast<std::uint16_t>(std::stoi(port)));
  while (true) ::pause();
}

// Each communicator waited 2 s by itself, 8 s in all.
TEST_CASE("a rank waits once for a silent process at its end, not once per communicator") {
  TcpStoreServer server("127.0.0.1", 0);
  const SilentPeer peer(server.port());
  Transports all = make_all(0, server.port());
  const std::array<std::byte, 8> data{};
  for (const auto& transport : all) REQUIRE(transport->channel(1).send(data));
  const auto begin = Clock::now();
  all.clear();
  CHECK(Clock::now() - begin < 6s);
}

TEST_CASE("patience with a process that did not answer comes back after a while") {
  const auto now = Clock::now();
  CHECK(ofi::has_patience_with("host/7", now));
  ofi::lose_patience_with("host/7", now);
  CHECK_FALSE(ofi::has_patience_with("host/7", now + 1s));
  CHECK(ofi::has_patience_with("host/8", now + 1s));
  CHECK(ofi::has_patience_with("host/7", now + ofi::kForgetAfter));
}

}  // namespace kolo
