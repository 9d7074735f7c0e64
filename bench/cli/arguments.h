// Command line of kolo-bench: the parsed and checked arguments.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/commands/draw.h"
#include "bench/commands/table.h"
#include "bench/commands/timeline.h"
#include "bench/commands/tune.h"
#include "bench/measure/library.h"
#include "bench/p2p/p2p.h"
#include "collectives/communicator.h"

namespace kolo::bench {

// Options of all commands, with their defaults.
struct Arguments {
  std::string
      command;  // "allreduce", ..., "p2p", "explain", "tune", "limits", "interpreter",
                // "plot", "peers", "transports", "diff", "draw", "table", "timeline", "topology"
  Problem problem;  // without its count
  int ranks = 2;
  std::string transport = "auto";
  bool is_over_all = false;  // every transport in turn instead of one
  std::string shape;         // decorators, in the syntax of KOLO_SHAPE, KOLO_FAULT and KOLO_TRACE
  std::string fault;
  std::string trace;
  std::string algorithm;
  bool is_by_all = false;            // every algorithm in turn instead of one
  std::vector<std::string> against;  // peers, such as "gloo:bcube"; empty: kolo only
  std::size_t min_bytes = 8;
  std::size_t max_bytes = std::size_t{256} << 20;
  std::size_t factor = 4;
  std::vector<std::size_t> sizes;          // --bytes; empty: from min_bytes to max_bytes
  std::string largest_by = "--max-bytes";  // the option that set max_bytes, for messages
  std::size_t segment_bytes = 0;
  int iterations = 0;  // per library and size; 0: as many as fit into `seconds`
  int warmup = 3;      // before the first pass; 1 before each later pass
  int passes = 4;      // how often the libraries take turns
  double seconds = 0.5;
  bool is_checked = true;
  bool is_memory_its_own = false;  // kolo's buffers come from Communicator::allocate
  std::string device;              // "cuda": buffers in device memory; empty: host memory
  Reproducibility reproducibility = Reproducibility::kFast;
  CallForm form = CallForm::kBlocking;
  bool is_captured = false;  // also measure kolo's calls as replays of a CUDA graph
  bool is_profiled = false;
  bool is_overlapped = false;  // a computation runs beside every operation
  std::string json;            // a file for JSON lines, "-" for standard output; empty: none
  std::chrono::milliseconds timeout{60'000};
  std::vector<std::string> plot_files;
  std::string old_file;  // of diff
  std::string new_file;
  double least_percent = 5;  // of diff: smaller differences are noise
  std::string plot_folder = "plots";
  bool is_table_plot = false;  // of plot: the bar charts of the command table
  std::string plot_format;     // comma-separated; empty: the defaults
  bool is_overview = false;    // of plot: one picture of all collectives
  DrawRequest draw;
  P2pRequest p2p;
  TimelineRequest timeline;
  std::string explained;  // of explain: the collective command
  TuneRequest tune;
  TableRequest table;
  std::string points;     // file for the rows, in a job that `table` starts; prints no table
  bool is_quick = false;  // of limits and interpreter: fewer sizes and repeats
  std::vector<std::string> limits;           // of limits: only these parts; empty: all
  std::vector<std::string> without_meaning;  // given options that this collective ignores
  std::vector<std::string> no_peers;  // requested, but unusable; why_left_out has the reasons
};

// Parses and checks the command line. Prints help or the version and returns false if that is all
// there is to do. `launched` is the number of ranks if a launcher started this process as one of
// them, else 0; `ranks` is then that number.
//
// Errors: std::invalid_argument with one clear message for wrong arguments; Error kUnavailable for
// a transport that this machine cannot run.
bool parse_arguments(int argc, const char* const* argv, Arguments& result, int launched = 0);

// Sizes to measure, rounded to multiples of the granule: those of --bytes, or the sweep. 0 if a
// collective has no data.
std::vector<std::size_t> sizes_of(const Arguments& arguments);

// The sizes as requested, before rounding.
std::vector<std::size_t> asked_sizes(const Arguments& arguments);

// Sizes are multiples of this: one element; for all-to-all, whose shares are equal, one element per
// rank.
std::size_t granule_of(const Problem& problem, int ranks);

}  // namespace kolo::bench
