#include "bench/ranks.h"

#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <mutex>
#include <thread>

#include "bench/cache_line.h"
#include "bench/measure.h"
#include "bench/peers/peers.h"
#include "bench/report.h"
#include "bench/sizes.h"
#include "transports/launch.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"

namespace kolo::bench {
namespace {

constexpr int kWrongResults = 3;

std::vector<std::size_t> sizes_of(const Arguments& arguments) {
  if (arguments.problem.collective == Collective::kBarrier) return {0};
  return sweep(arguments.min_bytes, arguments.max_bytes, arguments.factor,
               element_bytes(arguments.problem.type));
}

int exit_code(std::uint64_t wrong) {
  if (wrong == 0) return 0;
  std::cerr << fmt::format("kolo-bench: {} elements of the results are wrong\n", wrong);
  return kWrongResults;
}

int run_as_threads(const Arguments& arguments) {
  const std::shared_ptr<Store> store = make_local_store();
  std::mutex mutex;
  std::exception_ptr first;
  std::uint64_t wrong = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const std::uint64_t found = run_rank(rank, arguments, store);
        if (rank == 0) wrong = found;
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  return exit_code(wrong);
}

int run_as_processes(const Arguments& arguments, int argc, const char* const* argv) {
  LaunchRequest request;
  request.ranks = arguments.ranks;
  request.command = {own_program()};
  request.command.insert(request.command.end(), argv + 1, argv + argc);
  request.output = RankOutput::kRankZeroPlain;
  const LaunchResult result = launch_ranks(request);
  // A rank that found wrong results has said so.
  if (!result.message.empty() && result.exit_code != kWrongResults)
    std::cerr << "kolo-bench: " << result.message << '\n';
  return result.exit_code;
}

// Leaves the meeting by an exception: the others are told.
class Attendance {
 public:
  explicit Attendance(Meeting& meeting)
      : meeting_(meeting), exceptions_(std::uncaught_exceptions()) {}
  ~Attendance() {
    if (std::uncaught_exceptions() > exceptions_) meeting_.leave();
  }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

 private:
  Meeting& meeting_;
  int exceptions_;
};

std::vector<std::unique_ptr<Library>> make_libraries(int rank, const Arguments& arguments,
                                                     std::shared_ptr<Store> store) {
  LibraryRequest request{rank,
                         arguments.ranks,
                         store,
                         arguments.transport,
                         arguments.algorithm,
                         arguments.segment_bytes,
                         arguments.timeout};
  std::vector<std::unique_ptr<Library>> libraries;
  libraries.push_back(make_kolo(request));
  if (arguments.against.empty()) return libraries;
  request.store = prefixed(store, "peer/");
  libraries.push_back(make_peer(arguments.against, request));
  return libraries;
}

}  // namespace

std::uint64_t run_rank(int rank, const Arguments& arguments, std::shared_ptr<Store> store) {
  JsonLines json(rank == 0 ? arguments.json : "");
  // JSON lines on standard output are for a program: nothing else comes between them.
  Report report(arguments, arguments.json == "-" ? std::cerr : std::cout, json);
  Meeting meeting(rank, arguments.ranks, *store, arguments.timeout);
  const Attendance attendance(meeting);
  const auto libraries = make_libraries(rank, arguments, store);
  Bench bench(meeting, arguments);
  const double cache_line_us = meeting.cache_line_round_trip();
  if (rank == 0) report.begin(cache_line_us);
  for (const std::size_t bytes : sizes_of(arguments)) {
    Problem problem = arguments.problem;
    problem.count = bytes / element_bytes(problem.type);
    std::vector<Library*> able;
    for (const auto& library : libraries) {
      const std::string objection = library->objection(problem);
      if (objection.empty()) able.push_back(library.get());
      if (!objection.empty() && rank == 0)
        report.note(fmt::format("{} left out: {}", library->name(), objection));
    }
    const std::vector<Row> rows = bench.measure(able, bytes);
    if (rank == 0) report.add(rows);
  }
  const std::uint64_t wrong = rank == 0 ? report.end() : 0;
  meeting.wait();  // nobody takes its end of a connection away while others still measure
  return wrong;
}

int launched_ranks() { return read_settings().size.has_value() ? launch_environment().size : 0; }

int run_collective(const Arguments& arguments, int argc, const char* const* argv) {
  const LaunchEnvironment who = launch_environment();
  if (who.size > 1) {
    const auto store = store_from_environment(who, Clock::now() + arguments.timeout);
    return exit_code(run_rank(who.rank, arguments, store));
  }
  if (arguments.ranks == 1 || arguments.transport == "inproc") return run_as_threads(arguments);
  JsonLines{arguments.json};  // a file that cannot be written is said once, not by a rank
  return run_as_processes(arguments, argc, argv);
}

}  // namespace kolo::bench
