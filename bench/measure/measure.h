// Measures one size for one or more libraries in turn: A B A B ... on the same buffers, so that
// drift affects all of them alike. Only passes with the cores at the same distance count
// (pass_filter.h).
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
  std::string carrier = {};  // what the transport runs over, as in library.h; mostly empty
  std::string algorithm;
  std::string collective;
  Problem problem;
  int ranks = 0;
  std::size_t bytes = 0;
  std::size_t iterations = 0;  // counted ones
  // Iterations that do not count, of passes with the cores at a different distance (pass_filter.h).
  std::size_t left_out = 0;
  Quantiles time_us;
  double average_us = 0;                // of the counted iterations
  std::optional<std::uint64_t> wrong;   // elements of all iterations and ranks; none: not checked
  CoreDistance distance = {};           // distance of the cores around the counted passes
  std::vector<double> pass_us = {};     // medians of the counted passes
  double first_us = 0;                  // the first call of this size, with its preparations
  std::optional<double> limit_us = {};  // the machine's limit; none: not known
  std::string version = {};             // of the library; empty: unknown
  std::string peer = {};                // name in --against, "gloo:bcube"; empty: kolo
  CallForm form = CallForm::kBlocking;  // of kolo's calls
  bool is_memory_its_own = false;       // of kolo's buffers: Communicator::allocate
  std::string device = {};              // of the buffers; empty: host memory
  // Time of the call that enqueued the work on the device's stream, on rank 0; none: nothing was
  // enqueued.
  std::optional<double> enqueue_us = {};
  Reproducibility reproducibility = Reproducibility::kFast;  // kolo's
  std::size_t segment_bytes = 0;                             // kolo's; 0: its choice
  std::vector<Profile> profiles = {};                        // of all ranks, with --profile
};

// The name in --against for peers, as "openmpi:ring" and "openmpi" are the same library.
const std::string& name_of(const Row& row);

// None if no data moves: one rank, or no bytes.
std::optional<double> algorithm_bandwidth(const Row& row);
std::optional<double> bus_bandwidth(const Row& row);

// The smallest of the limits measured in the passes, since disturbances only add time. None if it
// is more than twice the fastest row's time: other programs had the cores, so it is not a limit.
std::optional<double> credible_limit(const std::vector<double>& limits_us,
                                     const std::vector<Row>& rows);
// The same, given the fastest row's 10th percentile.
std::optional<double> credible_limit(const std::vector<double>& limits_us, double quickest_us);

class Bench {
 public:
  // Collective over the group's ranks, as are its calls. The group and the arguments must outlive
  // it.
  Bench(RankGroup& group, const Arguments& arguments, Pages pages = Pages::kOwn);

  // Returns one row per library, in their order; the same rows on every rank. `bytes` must be a
  // multiple of granule_of (arguments.h). With `limit` each pass also measures the machine's limit,
  // which only rank 0's rows get. If the cores move, rows use passes of one distance, and up to as
  // many passes again run to get enough of them. With --iterations all passes count.
  std::vector<Row> measure(const std::vector<Library*>& libraries, std::size_t bytes,
                           RunLimit* limit = nullptr);

 private:
  struct Played {
    double first_us = 0;
    std::size_t per_pass = 0;
    std::vector<std::vector<double>> turns_us;  // times of the iterations of each pass
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
  // With --allocated: buffers from the library.
  std::shared_ptr<std::byte[]> allocated_data_;
  std::shared_ptr<std::byte[]> allocated_input_;
};

}  // namespace kolo::bench
