// kolo-bench ... --overlap: how much of an operation hides behind a computation.
//
// The operation is issued, the rank computes for about as long as the operation takes by itself,
// and then waits for it. Who makes progress meanwhile?
//
//   nobody    not before wait(): what is hidden is what the channels' credit and the kernel carry
//   polling   the computation calls Work::test() every 10 us
//   thread    the communicator's progress thread
//
//     hidden = (alone + computing - together) / min(alone, computing): 1 where the shorter costs no
//     time, 0 where one after the other is as quick, below 0 where it is quicker
//
// as in the Intel MPI Benchmarks and OSU's osu_iallreduce ("overlap"), but that `alone` is always
// without a progress thread: what is compared is one after the other in the fastest way. Where a
// progress thread has no core of its own, it shares that of the computation, and the figure says
// so.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "bench/cli/arguments.h"
#include "bench/measure/library.h"
#include "bench/measure/measure.h"
#include "bench/measure/rank_group.h"
#include "bench/output/report.h"

namespace kolo::bench {

enum class Progress : std::uint8_t { kNobody, kPolling, kThread };

std::string_view to_string(Progress progress);

struct OverlapRow {
  Progress progress = Progress::kNobody;
  Row alone;     // the operation by itself, and without a progress thread; the same in all rows
  Row together;  // with the computation beside it
  double compute_us = 0;
};

// The share of the shorter of the two that cost no time; noise can bring it above 1.
double hidden(double alone_us, double compute_us, double together_us);

std::string json_line(const OverlapRow& row);

// What is measured: kolo with and without a progress thread, alone and beside a computation.
// Collective over the job. The libraries are of the types that measure_overlap expects.
std::vector<std::unique_ptr<Library>> make_overlapped(const LibraryRequest& request);

// One size; the same rows on every rank. `libraries` as make_overlapped made them.
std::vector<OverlapRow> measure_overlap(RankGroup& group, Bench& bench,
                                        const std::vector<std::unique_ptr<Library>>& libraries,
                                        std::size_t bytes);

// Of one size, every element once: those of the operation alone, when it was measured and when the
// computation was fitted to it, and those beside the computation.
std::uint64_t count_wrong(const std::vector<OverlapRow>& rows);

// One rank's part in all `sizes`, printed by rank 0; returns how many elements were wrong.
std::uint64_t run_overlap(RankGroup& group, const Arguments& arguments,
                          const std::vector<std::unique_ptr<Library>>& libraries,
                          const std::vector<std::size_t>& sizes, std::ostream& table,
                          JsonLines& json);

}  // namespace kolo::bench
