// kolo-bench ... --overlap: measures how much of an operation hides behind a computation.
//
// The rank issues the operation, computes for about as long as the operation takes alone, and then
// waits. Three kinds of progress are compared:
//
//   none      no progress before wait(): only the channels' credit and the kernel carry data
//   polling   the computation calls Work::test() every 10 us
//   thread    the communicator's progress thread
//
//     hidden = (alone + computing - together) / min(alone, computing)
//
// 1: the shorter of the two costs no time. 0: no gain over running them in sequence. Below 0:
// running them in sequence is faster.
//
// The definition is that of the Intel MPI Benchmarks and OSU's osu_iallreduce ("overlap"), except
// that `alone` never has a progress thread: the reference is the fastest sequence. A progress
// thread without a core of its own shares the computation's core, which the figure shows.
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

enum class Progress : std::uint8_t { kNone, kPolling, kThread };

std::string_view to_string(Progress progress);

struct OverlapRow {
  Progress progress = Progress::kNone;
  Row alone;     // the operation alone, without a progress thread; the same in all rows
  Row together;  // with the computation beside it
  double compute_us = 0;
};

// The hidden share of the shorter of the two; noise can make it exceed 1.
double hidden(double alone_us, double compute_us, double together_us);

std::string json_line(const OverlapRow& row);

// The four measured libraries, all of them kolo: the operation alone, and the operation during a
// computation with each kind of Progress. Collective over the job. Only these objects can be passed
// to measure_overlap.
std::vector<std::unique_ptr<Library>> make_overlapped(const LibraryRequest& request);

// Measures one size; the same rows on every rank. `libraries` must come from make_overlapped.
std::vector<OverlapRow> measure_overlap(RankGroup& group, Bench& bench,
                                        const std::vector<std::unique_ptr<Library>>& libraries,
                                        std::size_t bytes);

// Wrong elements of one size, each counted once: of the operation alone (measured, and when the
// computation was fitted to it), and beside the computation.
std::uint64_t count_wrong(const std::vector<OverlapRow>& rows);

// Runs one rank's part of all `sizes`; rank 0 prints. Returns the number of wrong elements.
std::uint64_t run_overlap(RankGroup& group, const Arguments& arguments,
                          const std::vector<std::unique_ptr<Library>>& libraries,
                          const std::vector<std::size_t>& sizes, std::ostream& table,
                          JsonLines& json);

}  // namespace kolo::bench
