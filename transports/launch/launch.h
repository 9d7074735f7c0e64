// Launcher for the ranks of a job: kolo-run, and `--ranks N` of programs. All ranks are on this
// host, or on several hosts that are reached by ssh.
//
// Each rank is a process in its own process group. Its environment has RANK, WORLD_SIZE,
// LOCAL_RANK, LOCAL_WORLD_SIZE and KOLO_STORE: the launcher serves the store on a port chosen by
// the kernel. MASTER_ADDR and MASTER_PORT (a port reserved for the ranks) are for programs that do
// not use kolo, on one host. The standard input is empty.
//
// All ranks end together. If one fails, the others have a moment to report it, then get SIGTERM,
// then SIGKILL, with all processes that they started, also in other process groups and sessions.
// Signals to the launcher are passed on to all ranks. If the launcher itself is killed, even by
// SIGKILL, no process is left behind: the kernel ends the ranks, and a reaper process their process
// groups, and processes elsewhere that have the job's variables in their environment.
//
// The launcher never waits for the reader of its output. It ends on request although none reads.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "binding.h"

namespace kolo::inline v0 {

enum class RankOutput {
  kPrefixed,       // whole lines with the prefix "[rank] "; standard output and error separate
  kRankZeroPlain,  // rank 0 writes to the launcher's own output (maybe a terminal); the others as
                   // above
};

namespace launch {

// The ranks of one host, in a job on several.
struct HostShare {
  std::string name;
  int first_rank = 0;
  int ranks = 1;
};

// What an agent, which starts the ranks of one host, knows about the whole job.
struct PartOfJob {
  int first_rank = 0;
  int size = 1;
  std::string store;  // KOLO_STORE
};

}  // namespace launch

struct LaunchRequest {
  int ranks = 1;                     // on all hosts
  std::vector<std::string> command;  // a program, looked up in PATH, and its arguments
  RankOutput output = RankOutput::kPrefixed;
  launch::Binding binding = launch::Binding::kNone;  // kolo-run: kAuto
  std::chrono::milliseconds grace{5000};             // from SIGTERM to SIGKILL, after a failure
  // From a request to end that was passed on to SIGKILL; nothing: `grace`.
  std::optional<std::chrono::milliseconds> request_grace = {};
  // Open descriptors of this process that the ranks inherit, although they are closed on exec.
  std::vector<int> descriptors = {};
  std::vector<launch::HostShare> hosts = {};  // empty: all ranks on this host
  // Starts a command line on a host. A master connection that ssh begins for later calls would be a
  // child of the launcher, and end with it.
  std::string remote_shell = "ssh -o BatchMode=yes -o ControlMaster=no";
  std::optional<launch::PartOfJob> part = {};  // set in an agent; `ranks` are those of its host
};

struct LaunchResult {
  int exit_code = 0;  // of the rank that failed first, or 128 + its signal; 127, 126: it could not
                      // be started; 1: the ranks' output could not be written
  std::string message;  // empty on success; else the failed rank, how it ended, and what happened
                        // to the others
  std::optional<int> failed = {};  // the rank that failed first; or the host, by its index
  int passed_on = 0;               // the signal that was passed on and requested the end
};

// Runs the job to its end. Call it from the main thread of a program without other child processes:
// it waits for signals meanwhile. std::invalid_argument for an empty command, less than one rank,
// and settings (settings.h) that the ranks could not use. Error kSystem if there are no more
// processes or pipes.
LaunchResult launch_ranks(const LaunchRequest& request);

// Runs several jobs at the same time, each as launch_ranks does. A failed job does not end the
// others; signals are passed on to the ranks of all. `ended` is called in this thread as soon as a
// job has ended; empty: no call. Returns the results in the order of the requests.
using JobEnded = std::function<void(std::size_t job, const LaunchResult& result)>;
std::vector<LaunchResult> launch_jobs(std::span<const LaunchRequest> requests,
                                      const JobEnded& ended = {});

// Opens /dev/null for standard input, output and error if a program was started without them.
// Otherwise the next socket would get the descriptor's number, and the program's output. Call it
// first in main. kIsAnError: writing to a missing output fails, as it would without this call.
enum class LostOutput { kIsFine, kIsAnError };
void open_standard_descriptors(LostOutput lost = LostOutput::kIsFine);

// The path of the running program, to start it again as a rank.
std::string own_program();

}  // namespace kolo::inline v0
