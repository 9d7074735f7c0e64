// Stream clauses with ranks as threads or as processes.
#include <sys/wait.h>

#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/support/sanitizers.h"
#include "test/transports/cuda/stream_clauses.h"
#include "transports/conformance/child_process.h"

namespace kolo::test {

namespace {

using conformance::Child;

// For all clauses of a job.
constexpr std::chrono::seconds kLimit{kIsSanitized ? 400 : 100};

const char* to_string(StreamDriver driver) {
  return driver == StreamDriver::kFake ? "fake" : "installed";
}

// Starts the program of the ranks once for each list of arguments, and waits for all of them.
std::string run(const std::vector<std::vector<std::string>>& all_arguments) {
  const Deadline deadline = Clock::now() + kLimit;
  std::vector<std::unique_ptr<Child>> children;
  for (const auto& arguments : all_arguments) {
    std::vector<std::string> command = {KOLO_STREAM_CLAUSE_RANK};
    command.insert(command.end(), arguments.begin(), arguments.end());
    children.push_back(std::make_unique<Child>(command, Child::Output::kRead));
  }
  std::string failures;
  for (const auto& child : children) {
    std::string output;
    const bool has_ended = child->read_output(output, deadline);
    if (!has_ended) child->kill();
    const int status = child->wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    failures += output;
    if (!has_ended) {
      failures += "was killed after " + std::to_string(kLimit.count()) + " s\n";
    } else if (WIFSIGNALED(status)) {
      failures += "was ended by signal " + std::to_string(WTERMSIG(status)) + "\n";
    }
  }
  return failures;
}

}  // namespace

void prove_as_rank(const StreamClause& clause, const StreamKind& kind, const StreamMachine& machine,
                   int rank, const std::shared_ptr<Store>& store) {
  try {
    StreamRank played(kind, machine, rank, clause.size, store);
    clause.prove(played);
    played.close();
  } catch (const std::exception& error) {
    const std::string text = by_rank(rank, error.what());
    store->post_failure(text);
    throw std::runtime_error(text);
  }
}

void prove_in_threads(const StreamClause& clause, const StreamKind& kind,
                      const std::function<StreamMachine(int rank)>& machine_of) {
  const auto store = make_local_store();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < clause.size; ++rank) {
    threads.emplace_back([&, rank, machine = machine_of(rank)] {
      try {
        prove_as_rank(clause, kind, machine, rank, store);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

std::string prove_in_processes(const StreamKind& kind, StreamDriver driver) {
  std::string failures;
  for (const int size : {2, 3}) {
    const TcpStoreServer server("127.0.0.1", 0, size);
    std::vector<std::vector<std::string>> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back({to_string(driver), std::string(kind.name), std::to_string(rank),
                       std::to_string(size), std::to_string(server.port())});
    }
    failures += run(ranks);
  }
  return failures;
}

std::string prove_in_threads_of_a_process(const StreamKind& kind, StreamDriver driver) {
  return run({{to_string(driver), std::string(kind.name), "threads"}});
}

}  // namespace kolo::test
