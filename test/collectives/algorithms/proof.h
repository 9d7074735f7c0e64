// How a test proves an algorithm: for every size from 1 to 64, with the elements that each rank
// sends held against the algorithm's formula.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "collectives/schedule.h"
#include "collectives/schedule/checker.h"

namespace kolo::test {

inline constexpr int kLargestSize = 64;
inline constexpr std::size_t kSegments[] = {1, 2};   // elements of a segment
inline constexpr std::size_t kShares[] = {0, 1, 3};  // elements for each rank

using Write = std::function<Schedule(const ScheduleRequest&)>;
// The elements that a rank sends.
using Sent = std::function<std::size_t(int rank, int size, std::size_t count)>;
using SentFrom = std::function<std::size_t(int rank, int size, int root, std::size_t count)>;

// The schedule of every rank.
std::vector<Schedule> program_of(int size, int root, bool can_answer, const Write& write);

CheckOptions counting(std::size_t count, int root = 0);

// Counts that are awkward for `size` chunks; with segments of 1 and 2 elements they make one to
// five turns.
std::vector<std::size_t> awkward_counts(int size);

// Proves it in place and out of place, or fails the test.
void prove_segment(const std::vector<Schedule>& program, CheckOptions options, const Sent& sent);

// For short and shorter segments.
void prove(const std::vector<Schedule>& program, CheckOptions options, const Sent& sent);

// For all sizes, and for roots at both ends and between.
void prove_all_sizes(bool can_answer, const Write& write, const Sent& sent);
void prove_all_roots(const Write& write, const SentFrom& sent);

// Those that have one chunk: counts need not be awkward for a number of chunks.
void prove_whole_sizes(const Write& write, const Sent& sent);
void prove_whole_roots(const Write& write, const SentFrom& sent);

}  // namespace kolo::test
