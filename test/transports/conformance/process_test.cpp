// Ranks that are processes: one is killed in every state, and all others learn of it; one is done
// early, and nobody minds.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <thread>
#include <vector>

#include "test/transports/conformance/ranks.h"
#include "test/transports/conformance/scenarios.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// A rank's process, killed at the latest with this object.
class RankProcess {
 public:
  RankProcess(std::string_view transport, int rank, std::uint16_t port, std::string_view scenario) {
    std::vector<std::string> words = {KOLO_RANK_PROGRAM,    std::string(transport),
                                      std::to_string(rank), "127.0.0.1",
                                      std::to_string(port), std::string(scenario)};
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&pid_, KOLO_RANK_PROGRAM, nullptr, nullptr, arguments.data(), environ) != 0) {
      throw std::runtime_error("cannot start " KOLO_RANK_PROGRAM);
    }
  }
  ~RankProcess() {
    kill();
    wait();
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  void kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }

  // Its exit status as waitpid gives it.
  int wait() {
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_;
  }

 private:
  pid_t pid_ = -1;
  int status_ = -1;
};

template <typename Body>
void for_each_of_processes(Body body) {
  for_each_transport([&](const TransportRow& row) {
    if (row.joins_processes) body(row);
  });
}

}  // namespace

TEST_CASE("when a rank's process is killed, whatever it was doing, all others learn of it") {
  for_each_of_processes([](const TransportRow& row) {
    for (const Scenario& scenario : scenarios()) {
      INFO("killed " << scenario.name);
      const TcpStoreServer server("127.0.0.1", 0);
      const auto job =
          connect_tcp_store("127.0.0.1", server.port(), Clock::now() + std::chrono::seconds(60));
      RankProcess victim(row.name, kVictim, server.port(), scenario.name);
      RankProcess survivor(row.name, 1, server.port(), scenario.name);
      std::string wrong;
      std::thread rank_0(
          [&] { wrong = survive(scenario, row.name, 0, *job, prefixed(job, "transport/")); });
      job->get("ready", Clock::now() + std::chrono::seconds(60));
      victim.kill();
      rank_0.join();
      CHECK(wrong == "");
      CHECK(survivor.wait() == 0);
      CHECK_THAT(job->failure().value_or("no failure was posted"), ContainsSubstring("rank 2"));
    }
  });
}

TEST_CASE("a process that is done may end while its last segments are still unread") {
  for_each_of_processes([](const TransportRow& row) {
    const TcpStoreServer server("127.0.0.1", 0);
    const auto job =
        connect_tcp_store("127.0.0.1", server.port(), Clock::now() + std::chrono::seconds(60));
    RankProcess done(row.name, kVictim, server.port(), "finish early");
    RankProcess onlooker(row.name, 1, server.port(), "finish early");
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    const auto transport = make_transport(
        row.name, {0, kScenarioSize, prefixed(job, "transport/"), deadline, 0, kScenarioSize});
    CHECK(done.wait() == 0);
    CHECK(onlooker.wait() == 0);
    for (int i = 0; i < 2; ++i) {
      Bytes got(1000);
      while (!transport->channel(kVictim).receive(got) && Clock::now() < deadline)
        transport->progress();
      CHECK(got[999] == static_cast<std::byte>(i + 999));
    }
    CHECK_FALSE(job->failure());
  });
}

TEST_CASE("a transport that joins threads only says so to another process") {
  const TcpStoreServer server("127.0.0.1", 0);
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  const auto job = connect_tcp_store("127.0.0.1", server.port(), deadline);
  for (int rank = 0; rank < kScenarioSize; ++rank)
    prefixed(job, "transport/")->set("asked/" + std::to_string(rank), "inproc");
  prefixed(job, "transport/")->set("room", "another process\nhost\n1234 5678 ");
  const Error error = error_of([&] {
    make_transport("inproc",
                   {1, kScenarioSize, prefixed(job, "transport/"), deadline, 0, kScenarioSize});
  });
  CHECK(error.code() == ErrorCode::kUnavailable);
  CHECK(
      std::string(error.what()) ==
      "rank 1 is another process than rank 0: inproc joins ranks that are threads of one process; "
      "use shm or tcp");
}
