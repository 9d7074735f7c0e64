// The command line of kolo-bench, read and checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/commands/draw.h"
#include "bench/commands/timeline.h"
#include "bench/commands/tune.h"
#include "bench/measure/library.h"
#include "bench/p2p/p2p.h"
#include "collectives/communicator.h"

namespace kolo::bench {

// What a measurement of collectives was asked for.
struct Arguments {
  std::string command;  // "allreduce", ..., "p2p", "explain", "tune", "limits", "interpreter",
                        // "plot", "peers", "transports", "diff", "draw", "timeline"
  Problem problem;      // without its count
  int ranks = 2;
  std::string transport = "auto";
  bool is_over_all = false;  // every transport in turn, in the place of one
  std::string shape;         // decorators: as KOLO_SHAPE, KOLO_FAULT and KOLO_TRACE take them
  std::string fault;
  std::string trace;
  std::string algorithm;
  bool is_by_all = false;            // every algorithm in turn, in the place of one
  std::vector<std::string> against;  // peers, as "gloo:bcube"; empty: kolo alone
  std::size_t min_bytes = 8;
  std::size_t max_bytes = std::size_t{256} << 20;
  std::size_t factor = 4;
  std::vector<std::size_t> sizes;          // asked for; empty: from min_bytes to max_bytes
  std::string largest_by = "--max-bytes";  // the option that max_bytes is from
  std::size_t segment_bytes = 0;
  int iterations = 0;  // per library and size; 0: as many as fit into `seconds`
  int warmup = 3;      // before the first pass; before each later one 1
  int passes = 4;      // in turn between the libraries
  double seconds = 0.5;
  bool is_checked = true;
  bool is_memory_its_own = false;  // kolo's buffers are those of Communicator::allocate
  std::string device;              // "cuda": buffers are a device's memory; empty: the host's
  Reproducibility reproducibility = Reproducibility::kFast;
  CallForm form = CallForm::kBlocking;
  bool is_captured = false;  // beside that kolo's calls as replays of a graph
  bool is_profiled = false;
  bool is_overlapped = false;  // a computation runs beside every operation
  std::string json;            // a file for JSON lines, "-" for standard output; empty: none
  std::chrono::milliseconds timeout{60'000};
  std::vector<std::string> plot_files;
  std::string old_file;  // of diff
  std::string new_file;
  double least_percent = 5;  // diff: nothing smaller counts
  std::string plot_folder = "plots";
  std::string plot_format;   // words with commas between; empty: the usual ones
  bool is_overview = false;  // plot: one picture of all collectives
  DrawRequest draw;
  P2pRequest p2p;
  TimelineRequest timeline;
  std::string explained;  // explain: a command that measures
  TuneRequest tune;
  bool is_quick = false;                     // limits, interpreter: fewer sizes and repeats
  std::vector<std::string> limits;           // limits: of these alone; empty: all
  std::vector<std::string> without_meaning;  // options given that this collective has no use for
  std::vector<std::string> no_peers;         // of those asked for: why_left_out has the reasons
};

// Shows help and returns false where that is all there is to do. `launched` is the number of ranks
// where a launcher started this process as one of them, else 0; `ranks` is then that.
// std::invalid_argument with one clear message for what cannot be; Error kUnavailable for a
// transport that this machine cannot run.
bool parse_arguments(int argc, const char* const* argv, Arguments& result, int launched = 0);

// What a measurement goes through: what was named, or the sweep, in multiples of the granule; 0
// where a collective has no data.
std::vector<std::size_t> sizes_of(const Arguments& arguments);

// The same as it was asked for.
std::vector<std::size_t> asked_sizes(const Arguments& arguments);

// What sizes are multiples of: an element; of all-to-all, where all shares are equal, one for every
// rank.
std::size_t granule_of(const Problem& problem, int ranks);

}  // namespace kolo::bench
