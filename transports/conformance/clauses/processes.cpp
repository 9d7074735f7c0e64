// Clauses with ranks as processes: one rank is killed in every state, and the others learn of it;
// one rank ends early and in order, and no rank fails.
#include <thread>

#include "transports/conformance/child_process.h"
#include "transports/conformance/rank_process.h"
#include "transports/conformance/ranks.h"
#include "transports/conformance/scenarios.h"

namespace kolo::inline v0::conformance {

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

// Store server of a job, and this process's connection to it.
struct Job {
  TcpStoreServer server{"127.0.0.1", 0};
  std::shared_ptr<Store> store =
      connect_tcp_store("127.0.0.1", server.port(), Clock::now() + kPatience);
};

// Command of a rank. The Child object kills its process at the latest in its destructor.
std::vector<std::string> rank_of(const Subject& subject, const Job& job, int rank,
                                 std::string_view scenario) {
  std::vector<std::string> command = subject.rank_command;
  const auto words = rank_words(subject.known_as, rank, job.server.port(), scenario);
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

void kill_in(const Scenario& scenario, const Subject& subject) {
  const Job job;
  Child victim(rank_of(subject, job, kVictim, scenario.name));
  Child survivor(rank_of(subject, job, 1, scenario.name));
  std::string wrong;
  std::thread rank_0([&] {
    wrong = survive(scenario, subject.known_as, 0, *job.store, prefixed(job.store, "transport/"));
  });
  try {
    job.store->get("ready", Clock::now() + kPatience);
  } catch (const std::exception& error) {
    victim.kill();
    rank_0.join();
    throw std::runtime_error("killed " + std::string(scenario.name) +
                             ": the victim did not become "
                             "ready: " +
                             error.what());
  }
  victim.kill();
  rank_0.join();
  const std::string where = " (killed " + std::string(scenario.name) + ")";
  expect(wrong.empty(), "rank 0 to learn which rank is lost" + where + ": " + wrong);
  expect(survivor.wait() == 0, "rank 1 to learn which rank is lost" + where);
  const std::string cause = job.store->failure().value_or("no failure was posted");
  expect(cause.find("rank 2") != std::string::npos, "rank 2 in the first cause: " + cause + where);
}

}  // namespace

void killed(const Subject& subject) {
  for (const Scenario& scenario : scenarios()) kill_in(scenario, subject);
}

void done_early(const Subject& subject) {
  const Job job;
  Child done(rank_of(subject, job, kVictim, kFinishEarly));
  Child onlooker(rank_of(subject, job, 1, kFinishEarly));
  const auto deadline = Clock::now() + kPatience;
  const auto transport = subject.make(
      {0, kScenarioSize, prefixed(job.store, "transport/"), deadline, 0, kScenarioSize});
  expect(done.wait() == 0, "the rank that is done early to end well");
  expect(onlooker.wait() == 0, "the onlooker to end well");
  for (int i = 0; i < 2; ++i) {
    Bytes got(1000);
    while (!transport->channel(kVictim).receive(got)) {
      expect(Clock::now() < deadline, "what was sent before the end within the deadline");
      transport->progress();
    }
    expect(got[999] == static_cast<std::byte>(i + 999), "what was sent before the end");
  }
  expect(!job.store->failure(), "no failure");
}

}  // namespace kolo::inline v0::conformance
