#include "test/collectives/algorithms/proof.h"

#include "test/support/catch.h"

namespace kolo::test {
namespace {

using Counts = std::vector<std::size_t>;

std::vector<int> roots_of(int size) { return {0, size / 3, size - 1}; }

Counts whole_counts(int size) { return size > 20 ? Counts{7} : Counts{0, 1, 7}; }

void prove_roots(int size, const Counts& counts, const Write& write, const SentFrom& sent) {
  for (const int root : roots_of(size)) {
    const auto program = program_of(size, root, false, write);
    for (const std::size_t count : counts) {
      prove(program, counting(count, root),
            [&](int rank, int n, std::size_t elements) { return sent(rank, n, root, elements); });
    }
  }
}

}  // namespace

std::vector<Schedule> program_of(int size, int root, bool can_answer, const Write& write) {
  std::vector<Schedule> program;
  for (int rank = 0; rank < size; ++rank) {
    program.push_back(write({.rank = rank, .size = size, .root = root, .can_answer = can_answer}));
  }
  return program;
}

CheckOptions counting(std::size_t count, int root) {
  CheckOptions options;
  options.count = count;
  options.root = root;
  return options;
}

std::vector<std::size_t> awkward_counts(int size) {
  const auto n = static_cast<std::size_t>(size);
  if (size > 20) return {n - 1, 3 * n + 1};
  return {0, 1, n - 1, n, n + 1, 3 * n + 1, 5 * n - 1};
}

void prove_segment(const std::vector<Schedule>& program, CheckOptions options, const Sent& sent) {
  const int size = static_cast<int>(program.size());
  std::vector<std::size_t> expected;
  for (int rank = 0; rank < size; ++rank) expected.push_back(sent(rank, size, options.count));
  for (const bool in_place : {false, true}) {
    options.is_in_place = in_place;
    const CheckReport report = check(program, options);
    if (!report.is_proved()) {
      FAIL(report.fault << "\n"
                        << describe(program.front()) << "count " << options.count << ", segment "
                        << options.segment_elements << ", in place " << in_place);
    }
    INFO(describe(program.front()) << "count " << options.count);
    REQUIRE(report.sent == expected);
  }
}

void prove(const std::vector<Schedule>& program, CheckOptions options, const Sent& sent) {
  for (const std::size_t segment : kSegments) {
    options.segment_elements = segment;
    prove_segment(program, options, sent);
  }
}

void prove_all_sizes(bool can_answer, const Write& write, const Sent& sent) {
  for (int size = 1; size <= kLargestSize; ++size) {
    const std::vector<Schedule> program = program_of(size, 0, can_answer, write);
    for (const std::size_t count : awkward_counts(size)) prove(program, counting(count), sent);
  }
}

void prove_all_roots(const Write& write, const SentFrom& sent) {
  for (int size = 1; size <= kLargestSize; ++size) {
    prove_roots(size, awkward_counts(size), write, sent);
  }
}

void prove_whole_sizes(const Write& write, const Sent& sent) {
  for (int size = 1; size <= kLargestSize; ++size) {
    const std::vector<Schedule> program = program_of(size, 0, false, write);
    for (const std::size_t count : whole_counts(size)) prove(program, counting(count), sent);
  }
}

void prove_whole_roots(const Write& write, const SentFrom& sent) {
  for (int size = 1; size <= kLargestSize; ++size) {
    prove_roots(size, whole_counts(size), write, sent);
  }
}

}  // namespace kolo::test
