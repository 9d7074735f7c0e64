// Starting the ranks of a job on this host: what kolo-run does, and what `--ranks N` of a program
// does by itself.
//
// Each rank is a process of its own, in a process group of its own, with RANK, WORLD_SIZE,
// LOCAL_RANK, LOCAL_WORLD_SIZE and KOLO_STORE in its environment (the store is served by the
// launcher, on a port that the kernel chose), and with MASTER_ADDR and MASTER_PORT (a port kept
// free for the ranks) for programs that speak no kolo. Its input is empty.
//
// All end together: when one fails, the others get a moment to say so themselves, then SIGTERM,
// then SIGKILL; what they started dies with them. Signals that reach the launcher are passed on to
// all ranks. Should the launcher itself be killed, even by SIGKILL, the kernel and a guardian
// process end the ranks: nothing is ever left behind.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "binding.h"

namespace kolo {

enum class RankOutput {
  kPrefixed,       // whole lines behind "[rank] ", standard output and error kept apart
  kRankZeroPlain,  // rank 0 writes to the launcher's own output, a terminal perhaps; the others as
                   // above
};

struct LaunchRequest {
  int ranks = 1;
  std::vector<std::string> command;  // a program, looked up in PATH, and its arguments
  RankOutput output = RankOutput::kPrefixed;
  launch::Binding binding = launch::Binding::kNone;
  std::chrono::milliseconds grace{5000};  // from SIGTERM, or a signal passed on, to SIGKILL
};

struct LaunchResult {
  int exit_code = 0;    // of the rank that failed first: its own, or 128 + the signal; 127, 126: it
                        // could not be started; 1 where their output could not be written
  std::string message;  // empty when all went well; else which rank, how it ended, and what became
                        // of the others
  std::optional<int> failed = {};  // the rank that failed first
};

// Runs the job to its end. To be called from the main thread of a program that has no children of
// its own: it waits for signals meanwhile. std::invalid_argument for an empty command, less than
// one rank, and settings (settings.h) that the ranks could not use; Error kSystem where processes
// or pipes run out.
LaunchResult launch_ranks(const LaunchRequest& request);

// Opens /dev/null in the place of standard input, output and error where a program was started
// without them: the next socket would get the number, and the program's words. First thing in main.
// kIsAnError: writing to an output that is not there fails, as it would without this.
enum class LostOutput { kIsFine, kIsAnError };
void open_standard_descriptors(LostOutput lost = LostOutput::kIsFine);

// The path of the running program, to start it again as a rank.
std::string own_program();

}  // namespace kolo
