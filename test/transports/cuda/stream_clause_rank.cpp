// Ranks that prove the stream clauses, outside the test's process: a program for stream_jobs.cpp.
//
//   stream_clause_rank DRIVER KIND RANK SIZE PORT   one rank, with a TCP store at that port: all
//                                                   clauses for that number of ranks
//   stream_clause_rank DRIVER KIND threads          all ranks of all clauses as threads
//
// DRIVER is fake or installed; KIND is a name of stream_kinds(). Prints each clause before its
// start, so that the last line of a killed process names the clause.
//
// Exit codes: 0 all clauses are proved; 1 a clause is not: the last line has the reason.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>

#include "test/transports/cuda/stream_clauses.h"
#include "transports/conformance/child_process.h"

namespace {

using namespace kolo;
using namespace kolo::test;

constexpr std::chrono::seconds kPatience{60};

const StreamKind& kind_named(std::span<const StreamKind> kinds, const std::string& name) {
  for (const StreamKind& kind : kinds) {
    if (kind.name == name) return kind;
  }
  throw std::invalid_argument("no kind '" + name + "' in this build");
}

void announce(const StreamClause& clause) {
  std::printf("%.*s\n", static_cast<int>(clause.text.size()), clause.text.data());
  std::fflush(stdout);
}

// What a fake machine has to object to after a clause.
std::string faults_of(const FakeMachine& machine) {
  std::string faults = machine.left_over();
  for (const std::string& violation : machine.violations()) faults += violation + "; ";
  return faults;
}

// The drivers of all ranks in this process.
class Machines {
 public:
  explicit Machines(const std::string& driver) : is_fake_(driver == "fake") {
    for (int rank = 0; is_fake_ && rank < 3; ++rank) drivers_.push_back(fake_.process());
  }

  // `process` tells ranks of a fake driver apart that are threads.
  StreamMachine of(int rank, const std::string& process) {
    if (!is_fake_) return installed_machine();
    return fake_machine(drivers_.at(static_cast<std::size_t>(rank)), process);
  }

  void require_clean() const {
    const std::string faults = faults_of(fake_);
    if (!faults.empty()) throw std::runtime_error("the fake machine reports: " + faults);
  }

 private:
  const bool is_fake_;
  FakeMachine fake_;
  std::vector<std::shared_ptr<FakeDriver>> drivers_;
};

void prove_as_process(const std::string& driver, const StreamKind& kind, int rank, int size,
                      std::uint16_t port) {
  const auto job = connect_tcp_store("127.0.0.1", port, Clock::now() + kPatience);
  job->join(rank);
  Machines machines(driver);
  const StreamMachine machine = machines.of(rank, "");
  // The context stays from clause to clause.
  const std::shared_ptr<cuda::Device> device =
      driver == "fake" ? nullptr : std::make_shared<cuda::Device>(machine.driver, 0);
  int number = 0;
  for (const StreamClause& clause : stream_clauses()) {
    ++number;
    if (clause.size != size) continue;
    announce(clause);
    prove_as_rank(clause, kind, machine, rank,
                  prefixed(job, "clause " + std::to_string(number) + "/"));
    machines.require_clean();
  }
  job->leave();
}

// Streams of all ranks share a device's hardware queues, 8 unless the environment says otherwise. A
// stream that shares a queue with a waiting stream waits, too.
void prove_as_threads(const std::string& driver, const StreamKind& kind) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  Machines machines(driver);
  for (const StreamClause& clause : stream_clauses()) {
    announce(clause);
    prove_in_threads(clause, kind, [&](int rank) {
      return machines.of(rank, driver == "fake" ? "rank " + std::to_string(rank) : "");
    });
    machines.require_clean();
  }
}

}  // namespace

int main(int argc, char** argv) {
  conformance::end_with_parent();
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    const auto kinds = stream_kinds();
    if (words.size() == 3 && words[2] == "threads") {
      prove_as_threads(words[0], kind_named(kinds, words[1]));
    } else if (words.size() == 5) {
      prove_as_process(words[0], kind_named(kinds, words[1]), std::stoi(words[2]),
                       std::stoi(words[3]), static_cast<std::uint16_t>(std::stoi(words[4])));
    } else {
      throw std::invalid_argument("usage: see stream_clause_rank.cpp");
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
