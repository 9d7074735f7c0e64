// Proof of an algorithm in a test: for every size from 1 to 64, with the elements that each rank
// sends compared with the algorithm's formula.
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
// The number of elements that a rank sends.
using Sent = std::function<std::size_t(int rank, int size, std::size_t count)>;
using SentFrom = std::function<std::size_t(int rank, int size, int root, std::size_t count)>;

// The schedule of every rank.
std::vector<Schedule> program_of(int size, int root, bool can_answer, const Write& write);

CheckOptions counting(std::size_t count, int root = 0);

// Counts that are awkward for `size` chunks. Segments of 1 and 2 elements cut them into one to five
// segments per chunk.
std::vector<std::size_t> awkward_counts(int size);

// Proves the program in place and out of place, or fails the test.
void prove_segment(const std::vector<Schedule>& program, CheckOptions options, const Sent& sent);

// The same for both segment lengths of kSegments.
void prove(const std::vector<Schedule>& program, CheckOptions options, const Sent& sent);

// The same for all sizes, and for roots at both ends and in between.
void prove_all_sizes(bool can_answer, const Write& write, const Sent& sent);
void prove_all_roots(const Write& write, const SentFrom& sent);

// For programs with one chunk: the counts need not be awkward for a number of chunks.
void prove_whole_sizes(const Write& write, const Sent& sent);
void prove_whole_roots(const Write& write, const SentFrom& sent);

}  // namespace kolo::test
