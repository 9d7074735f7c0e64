// One size, measured for one or more libraries in turn (player.h): A B A B ... on the same buffers,
// so that whatever drifts drifts for all of them, and of turns in which the cores were equally far
// apart (regimes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/cli/arguments.h"
#include "bench/measure/buffer.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/library.h"
#include "bench/measure/pass.h"
#include "bench/measure/profile.h"
#include "bench/measure/rank_group.h"
#include "bench/measure/statistics.h"

namespace kolo::bench {

class RunLimit;
struct SelectedPasses;

// One library at one size.
struct Row {
  std::string library;
  std::string transport;
  std::string carrier = {};  // what that goes over, as in library.h; mostly empty
  std::string algorithm;
  std::string collective;
  Problem problem;
  int ranks = 0;
  std::size_t bytes = 0;
  std::size_t iterations = 0;  // that count
  // Others, of turns that began or ended where the cores were at another distance (regimes.h).
  std::size_t left_out = 0;
  Quantiles time_us;
  std::optional<std::uint64_t> wrong;  // elements, over all iterations and ranks; none: not checked
  CoreDistance distance = {};          // how far apart the cores were, round turns that count
  std::vector<double> pass_us = {};    // the medians of these turns
  double first_us = 0;                 // the first call of that size, with all that it prepares
  std::optional<double> limit_us = {};  // what the machine takes at least; none: not known
  std::string version = {};             // of the library; empty: unknown
  std::string peer = {};                // as --against named it, "gloo:bcube"; empty: kolo itself
  CallForm form = CallForm::kBlocking;  // of kolo's calls
  bool is_memory_its_own = false;       // of kolo's buffers: Communicator::allocate
  std::string device = {};              // whose memory the buffers are; empty: the host's
  // What the call took that gave the work to the device's stream, on rank 0; none: nothing did.
  std::optional<double> enqueue_us = {};
  Reproducibility reproducibility = Reproducibility::kFast;  // kolo's
  std::size_t segment_bytes = 0;                             // kolo's; 0: its choice
  std::vector<Profile> profiles = {};                        // of its ranks, where asked for
};

// As --against has it, for peers: "openmpi:ring" and "openmpi" are the same library.
const std::string& name_of(const Row& row);

// None where nothing moves: one rank, or no bytes.
std::optional<double> algorithm_bandwidth(const Row& row);
std::optional<double> bus_bandwidth(const Row& row);

// The least of what one size was measured to take at least in each pass: what disturbs only adds.
// None where that is more than twice the time of the quickest row, which no limit can be: others
// had the cores.
std::optional<double> credible_limit(const std::vector<double>& limits_us,
                                     const std::vector<Row>& rows);
// The same, by the quickest row's 10th percentile.
std::optional<double> credible_limit(const std::vector<double>& limits_us, double quickest_us);

class Bench {
 public:
  // Collective over the group's ranks, as are its calls. The group and the arguments must
  // outlive it.
  Bench(RankGroup& group, const Arguments& arguments, Pages pages = Pages::kOwn);

  // The same rows on every rank, one per library, in their order; `bytes` is a multiple of
  // granule_of (arguments.h). With `limit` the machine's limit
  // has a turn in each pass as well; it is in the rows of rank 0 alone. Where the cores move, rows
  // are of one distance, with up to as many passes again to get enough of them; of a number of
  // iterations that was asked for (--iterations) all count.
  std::vector<Row> measure(const std::vector<Library*>& libraries, std::size_t bytes,
                           RunLimit* limit = nullptr);

 private:
  struct Played {
    double first_us = 0;
    std::size_t per_pass = 0;
    std::vector<std::vector<double>> turns_us;  // each with its iterations' times
    std::uint64_t wrong = 0;
  };

  void run_pass(Library& library, PassRequest turn, int pass, Played& played);
  Row row_of(Library& library, const Problem& problem, std::size_t bytes, const Played& played,
             const SelectedPasses& counted) const;

  RankGroup& group_;
  const Arguments& arguments_;
  std::uint32_t iteration_ = 0;
  Buffer data_;   // the result, and in place the input
  Buffer input_;  // out of place
  // Of the library that has memory of its own, where that is asked for.
  std::shared_ptr<std::byte[]> allocated_data_;
  std::shared_ptr<std::byte[]> allocated_input_;
};

}  // namespace kolo::bench
