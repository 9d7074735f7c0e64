#include "bench/cli/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench/cli/same_arguments.h"
#include "bench/cli/sizes.h"
#include "bench/commands/explain.h"
#include "bench/commands/overlap.h"
#include "bench/commands/topology.h"
#include "bench/commands/tune.h"
#include "bench/device/captured_graph.h"
#include "bench/device/library_on_device.h"
#include "bench/device/memory.h"
#include "bench/limits/run_limit.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/cores.h"
#include "bench/measure/measure.h"
#include "bench/measure/profile.h"
#include "bench/output/report.h"
#include "bench/output/run_info.h"
#include "bench/p2p/p2p.h"
#include "bench/peers/peers.h"
#include "transports/launch/launch.h"
#include "transports/launch/report_once.h"
#include "transports/posix/host/cgroup.h"
#include "transports/registry.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"

namespace kolo::bench {
namespace {

constexpr std::chrono::seconds kStoreAnswers{2};
constexpr int kFailed = 1;
constexpr int kBadArguments = 2;
constexpr int kWrongResults = 3;

int exit_code(std::uint64_t wrong) {
  if (wrong == 0) return 0;
  std::cerr << fmt::format("kolo-bench: {} of the results {} wrong\n",
                           format_count(wrong, "element"), wrong == 1 ? "is" : "are");
  return kWrongResults;
}

int run_as_threads(const Arguments& arguments) {
  const std::shared_ptr<Store> store = make_local_store();
  std::mutex mutex;
  std::exception_ptr first;
  std::uint64_t wrong = 0;
  const auto run = [&](int rank) {
    try {
      const std::uint64_t found = run_rank(rank, arguments, store, Audience::kOneForAll);
      if (rank == 0) wrong = found;
    } catch (const ReportedByAnotherRank&) {
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    try {
      threads.emplace_back(run, rank);
    } catch (const std::system_error& error) {
      // The started threads wait for all ranks, so they must see the failure.
      store->post_failure(fmt::format("cannot start a thread for rank {} of {}: {}", rank,
                                      arguments.ranks, error.what()));
      break;
    }
  }
  threads.clear();  // joins them
  if (const auto cause = store->failure(); cause && !first) throw std::runtime_error(*cause);
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
  // With these codes the rank, or another rank, has already reported the reason.
  const bool is_said = result.exit_code == kFailed || result.exit_code == kBadArguments ||
                       result.exit_code == kWrongResults;
  // After Ctrl-C the user knows why the ranks ended.
  const bool is_interrupted =
      result.exit_code == 128 + SIGINT && result.message.ends_with("was passed on");
  if (!result.message.empty() && !is_said)
    std::cerr << "kolo-bench: " << (is_interrupted ? "interrupted" : result.message) << '\n';
  return result.exit_code;
}

LibraryRequest request_of(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                          std::shared_ptr<DeviceMemory> device) {
  return {rank,
          arguments.ranks,
          store,
          arguments.transport,
          arguments.algorithm,
          arguments.segment_bytes,
          arguments.timeout,
          arguments.reproducibility,
          arguments.form,
          false,
          arguments.is_profiled,
          std::move(device)};
}

std::shared_ptr<DeviceMemory> device_of(int rank, const Arguments& arguments) {
  if (arguments.device.empty()) return nullptr;
  return open_device(read_settings().local_rank.value_or(rank));
}

std::vector<std::unique_ptr<Library>> make_libraries(int rank, const Arguments& arguments,
                                                     std::shared_ptr<Store> store,
                                                     std::shared_ptr<DeviceMemory> device) {
  LibraryRequest request = request_of(rank, arguments, store, std::move(device));
  std::vector<std::unique_ptr<Library>> libraries;
  if (arguments.is_by_all) {
    libraries = make_kolo_by_all(connect_kolo(request), arguments.problem, request);
  } else {
    libraries.push_back(make_kolo(request));
    request.transport = libraries.front()->transport();  // "auto" is resolved now
    if (arguments.is_captured) libraries.push_back(make_captured(request));
    for (const std::string& peer : arguments.against) {
      request.store = prefixed(store, fmt::format("peer/{}/", peer));
      libraries.push_back(make_peer(peer, request));
    }
  }
  if (request.device == nullptr) return libraries;
  for (auto& library : libraries)
    library = std::make_unique<LibraryOnDevice>(std::move(library), request.device, rank,
                                                arguments.ranks);
  return libraries;
}

// Resources of one rank. They must live until the other ranks know of a failure: a connection that
// closes earlier would be reported as a failure of its own.
struct RankState {
  std::unique_ptr<JsonLines> json;
  std::unique_ptr<RankGroup> group;
  std::vector<std::unique_ptr<Library>> libraries;
  std::shared_ptr<Communicator> communicator;  // for explain and tune
  std::vector<std::unique_ptr<Pipe>> pipes;    // for p2p
};

std::uint64_t measure_comparisons(int rank, const Arguments& arguments,
                                  std::shared_ptr<Store> store, RankState& state,
                                  std::ostream& table) {
  CoreDistance distance;
  distance.add(state.group->cache_line_round_trip());
  state.communicator = connect_kolo(request_of(rank, arguments, store, device_of(rank, arguments)));
  std::unique_ptr<ComparisonReport> report;
  if (rank == 0 && arguments.command == "tune")
    report = make_tune_report(arguments, table, *state.json);
  if (rank == 0 && arguments.command == "explain")
    report = std::make_unique<Explanation>(arguments, table, *state.json);
  return compare_algorithms(state.communicator, *state.group, distance, arguments, report.get());
}

bool has_worker_processes(const std::unique_ptr<Library>& library) {
  return library->runs_in_workers();
}

std::vector<std::string> versions_of(const RankState& state) {
  std::vector<std::string> versions = {own_version()};
  for (const auto& library : state.libraries) {
    const std::string version = library->version();
    if (!version.empty() && std::ranges::find(versions, version) == versions.end())
      versions.push_back(version);
  }
  return versions;
}

// Names of all libraries except the first of kolo, in their order.
std::vector<std::string> names_beside(const Arguments& arguments) {
  std::vector<std::string> names = arguments.against;
  if (arguments.is_captured) names.insert(names.begin(), kCaptured);
  return names;
}

// The same names, with the transport if it differs from kolo's: gloo's TCP beside shm.
std::vector<std::string> peers_of(const Arguments& arguments, const RankState& state) {
  std::vector<std::string> peers = names_beside(arguments);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i] = peer_over(peers[i], state.libraries[i + 1]->transport(),
                         state.libraries.front()->transport());
  }
  return peers;
}

// Libraries that can run a problem, and their names in --against.
struct Able {
  std::vector<Library*> libraries;
  std::vector<std::string> peers;
};

Able find_able(const Problem& problem, const Arguments& arguments, const RankState& state,
               Report* report) {
  Able able;
  const std::vector<std::string> beside = names_beside(arguments);
  for (std::size_t i = 0; i < state.libraries.size(); ++i) {
    const std::string peer = i == 0 || arguments.is_by_all ? "" : beside[i - 1];
    const std::string objection = state.libraries[i]->objection(problem);
    if (objection.empty()) {
      able.libraries.push_back(state.libraries[i].get());
      able.peers.push_back(peer);
    } else if (report != nullptr) {
      report->leave_out(peer.empty() ? state.libraries[i]->name() : peer, objection);
    }
  }
  return able;
}

std::vector<std::string> cautions_of(const RankState& state) {
  std::vector<std::string> cautions;
  for (const auto& library : state.libraries) {
    const std::string caution = library->caution();
    if (!caution.empty()) cautions.push_back(fmt::format("{}: {}", library->name(), caution));
  }
  return cautions;
}

std::uint64_t measure_libraries(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                                RankState& state, std::ostream& table) {
  Report report(arguments, table, *state.json);
  const auto device = device_of(rank, arguments);
  state.libraries = make_libraries(rank, arguments, store, device);
  const bool is_shared = std::ranges::any_of(state.libraries, has_worker_processes);
  const Pages pages = is_shared ? Pages::kShared : Pages::kOwn;
  Bench bench(*state.group, arguments, pages);
  RunLimit limit(arguments, rank, state.libraries.front()->transport(), store, pages, device);
  const double cache_line_us = state.group->cache_line_round_trip();
  if (rank == 0) {
    report.begin(*state.libraries.front(), cache_line_us, versions_of(state),
                 peers_of(arguments, state), cautions_of(state));
  }
  const Communicator& own = *state.libraries.front()->communicator();
  for (const std::size_t bytes : sizes_of(arguments)) {
    Problem problem = arguments.problem;
    problem.count = bytes / element_bytes(problem.type);
    const Able able = find_able(problem, arguments, state, rank == 0 ? &report : nullptr);
    const Profile before = arguments.is_profiled ? profile_of(own) : Profile{};
    std::vector<Row> rows = bench.measure(able.libraries, bytes, &limit);
    std::vector<Profile> profiles;
    if (arguments.is_profiled) {
      profiles =
          gather_profiles(*store, rank, fmt::format("profile/{}", bytes),
                          between(before, profile_of(own)), Clock::now() + arguments.timeout);
    }
    if (rank != 0) continue;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].peer = able.peers[i];
      if (rows[i].peer == kCaptured) rows[i].form = CallForm::kCaptured;
    }
    if (arguments.is_by_all) {
      report.add_alternatives(rows);
    } else {
      rows.front().profiles = profiles;
      report.add(rows);
    }
    for (const std::string& line : enqueue_lines(rows)) report.note(line);
    for (const std::string& line : profile_lines(profiles)) report.note(line);
  }
  return rank == 0 ? report.end() : 0;
}

std::uint64_t measure_pairs(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                            RankState& state, std::ostream& table) {
  state.pipes = make_pipes(rank, arguments, store, device_of(rank, arguments));
  RunLimit limit(arguments, rank, state.pipes.front()->transport(), store);
  return run_p2p(*state.group, arguments, state.pipes, table, *state.json, &limit);
}

std::uint64_t measure_overlapped(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                                 RankState& state, std::ostream& table) {
  state.libraries = make_overlapped(request_of(rank, arguments, store, device_of(rank, arguments)));
  return run_overlap(*state.group, arguments, state.libraries, sizes_of(arguments), table,
                     *state.json);
}

std::uint64_t measure_command(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                              RankState& state, std::ostream& table) {
  if (arguments.command == "p2p") return measure_pairs(rank, arguments, store, state, table);
  if (arguments.is_overlapped) return measure_overlapped(rank, arguments, store, state, table);
  const bool is_comparison = arguments.command == "explain" || arguments.command == "tune";
  return is_comparison ? measure_comparisons(rank, arguments, store, state, table)
                       : measure_libraries(rank, arguments, store, state, table);
}

// Writes timelines while other ranks can still be told that a file cannot be written.
void write_records(RankState& state) {
  if (state.communicator) state.communicator->write_records();
  for (const auto& library : state.libraries) library->write_records();
  for (const auto& pipe : state.pipes) pipe->write_records();
}

std::uint64_t measure_all(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                          Audience audience, RankState& state) {
  state.json = std::make_unique<JsonLines>(rank == 0 ? arguments.json : "");
  // With JSON lines on standard output the table goes to standard error.
  std::ostream& shown = arguments.json == "-" ? std::cerr : std::cout;
  std::ostringstream unseen;
  std::ostream& table = arguments.points.empty() ? shown : unseen;
  // Other launchers bind their ranks themselves.
  if (audience == Audience::kOneForAll) bind_rank(rank, arguments.ranks);
  require_same_arguments(rank, arguments, *store);
  if (arguments.command == "topology") {
    state.communicator = connect_kolo(request_of(rank, arguments, store, nullptr));
    run_topology(*state.communicator, arguments, table, *state.json);
    state.communicator->barrier();  // keep connections open until all ranks have finished
    return 0;
  }
  state.group = std::make_unique<RankGroup>(rank, arguments.ranks, *store, arguments.timeout);
  const std::uint64_t wrong = measure_command(rank, arguments, store, state, table);
  write_records(state);
  state.group->wait();  // keep connections open until all ranks have finished
  return wrong;
}

// Ranks under kolo's launcher use its store ("tcp:") and share its terminal.
Audience audience_of_processes() {
  return read_settings().store.starts_with("tcp:") ? Audience::kOneForAll : Audience::kOneEachRank;
}

int code_of(const std::exception& failure) {
  return dynamic_cast<const std::invalid_argument*>(&failure) != nullptr ? kBadArguments : kFailed;
}

int run_launched(const Arguments& arguments, const LaunchEnvironment& who) {
  const auto store = store_from_environment(who, Clock::now() + arguments.timeout);
  const Audience audience = audience_of_processes();
  try {
    return exit_code(run_rank(who.rank, arguments, store, audience));
  } catch (const ReportedByAnotherRank&) {
    return launch::wait_until_reported(*store);
  } catch (const std::exception& failure) {
    if (audience == Audience::kOneEachRank) throw;
    const int code = code_of(failure);
    report_for_all(*store, failure.what(), code);
    return code;
  }
}

// Refuses buffers that are larger than the memory: the kernel would kill a process.
void require_memory(const Arguments& arguments) {
  if (arguments.problem.collective == Collective::kBarrier) return;
  const double buffers = arguments.problem.is_in_place ? 1 : 2;
  const double needed = static_cast<double>(arguments.max_bytes) * buffers * arguments.ranks;
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto group = posix::cgroup_memory();
  const bool is_group = group && static_cast<double>(group->limit) < machine;
  const double there = is_group ? static_cast<double>(group->limit) : machine;
  if (needed <= there) return;
  constexpr double kGiB = 1 << 30;
  throw std::invalid_argument(fmt::format(
      "{} {}: the buffers of {} ranks take {:.1f} GiB together, and this {} {:.1f}",
      arguments.largest_by, format_bytes(arguments.max_bytes), arguments.ranks, needed / kGiB,
      is_group ? fmt::format("process's cgroup may have ({})", group->file) : "machine has",
      there / kGiB));
}

}  // namespace

std::uint64_t run_rank(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                       Audience audience) {
  RankState state;
  try {
    return measure_all(rank, arguments, store, audience, state);
  } catch (const std::exception& failure) {
    try {
      fail_together(*store, rank, audience, failure);
    } catch (...) {
      if (state.group)
        state.group->leave();  // after posting the cause: ranks that see this look it up
      throw;
    }
  }
}

void report_refusal(const std::string& refusal) {
  std::shared_ptr<Store> store;
  try {
    const LaunchEnvironment who = launch_environment();
    if (who.size > 1 && audience_of_processes() == Audience::kOneForAll) {
      store = store_from_environment(who, Clock::now() + kStoreAnswers);
      fail_together(*store, who.rank, Audience::kOneForAll, std::invalid_argument(refusal));
    }
  } catch (const ReportedByAnotherRank&) {
    launch::wait_until_reported(*store);
    return;
  } catch (const std::exception&) {  // also if the environment itself is wrong
    if (store) return report_for_all(*store, refusal, kBadArguments);
  }
  std::cerr << "kolo-bench: " << refusal << '\n';
}

int launched_ranks() { return read_settings().size.has_value() ? launch_environment().size : 0; }

// Runs one job per transport, in sequence. The appended --transport counts, as the last of an
// option does.
int run_over_all_transports(const Arguments& arguments, int argc, const char* const* argv) {
  int worst = 0;
  for (const std::string_view name : transport_names()) {
    if (const std::string why = why_unusable(name); !why.empty()) {
      std::cerr << "kolo-bench: " << name << " is left out: " << why << '\n';
      continue;
    }
    Arguments job = arguments;
    job.is_over_all = false;
    job.transport = name;
    std::vector<const char*> words(argv, argv + argc);
    words.insert(words.end(), {"--transport", job.transport.c_str()});
    const int code = run_collective(job, static_cast<int>(words.size()), words.data());
    if (code != 0 && code != kWrongResults) return code;
    worst = std::max(worst, code);
  }
  return worst;
}

int run_collective(const Arguments& arguments, int argc, const char* const* argv) {
  if (arguments.is_over_all) return run_over_all_transports(arguments, argc, argv);
  const LaunchEnvironment who = launch_environment();
  if (who.size > 1) return run_launched(arguments, who);
  require_memory(arguments);
  if (const std::string why = arguments.device.empty() ? "" : why_no_device(); !why.empty())
    throw Error(ErrorCode::kUnavailable, kNoPeer, "--device cuda: " + why);
  if (arguments.ranks == 1 || !joins_processes(arguments.transport))
    return run_as_threads(arguments);
  JsonLines{arguments.json};  // report an unwritable file once, here
  return run_as_processes(arguments, argc, argv);
}

}  // namespace kolo::bench
