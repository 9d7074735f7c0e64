// Collectives with a root, all-to-all and scans over every transport: every rank gets the right
// result, by every algorithm, in place and out of place, and nothing else is overwritten.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kSegmentBytes = 1024;
constexpr std::int64_t kUntouched = -7;
constexpr auto kInt = ElementType::kInt64;

// The input of rank `rank` at `index`.
std::int64_t value_of(int rank, std::size_t index) {
  return rank * 1'000'003 + static_cast<std::int64_t>(index) * 11;
}

std::int64_t sum_of(int ranks, std::size_t index) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value_of(rank, index);
  return sum;
}

using Data = std::vector<std::int64_t>;

Data given(int rank, std::size_t first, std::size_t count) {
  Data data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = value_of(rank, first + i);
  return data;
}

struct Case {
  std::size_t count;
  int root;
  bool is_in_place;
  CallOptions options;
};

using Body = void (*)(Communicator&, const Case&);

template <typename Expected>
void expect_elements(const Data& data, std::size_t first, std::size_t count, const Expected& value,
                     const Case& c) {
  for (std::size_t i = 0; i < count; ++i) {
    expect(data[i] == value(first + i), [&] {
      return "element " + std::to_string(first + i) + " of " + std::to_string(c.count) + " is " +
             std::to_string(data[i]) + ", root " + std::to_string(c.root) + ", by '" +
             std::string(c.options.algorithm) + (c.is_in_place ? "', in place" : "'");
    });
  }
}

void reduce(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  Data in = given(communicator.rank(), 0, c.count);
  Data out = c.is_in_place ? in : Data(c.count, kUntouched);
  communicator.reduce({c.is_in_place ? out.data() : in.data(), c.count, kInt},
                      {out.data(), c.count, kInt}, c.root, ReduceOp::kSum, c.options);
  const bool is_root = communicator.rank() == c.root;
  expect_elements(
      out, 0, c.count,
      [&](std::size_t i) {
        return is_root         ? sum_of(size, i)
               : c.is_in_place ? value_of(communicator.rank(), i)
                               : kUntouched;
      },
      c);
}

void gather(Communicator& communicator, const Case& c) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  const std::size_t first = chunk_begin(c.count, size, rank);
  const std::size_t mine = chunk_count(c.count, size, rank);
  Data in = given(rank, first, mine);
  Data out(c.count, kUntouched);
  const bool is_in_place = c.is_in_place && rank == c.root;
  if (is_in_place)
    std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(first));
  communicator.gather({is_in_place ? out.data() + first : in.data(),
                       chunk_count(c.count, communicator.size(), communicator.rank()), kInt},
                      {out.data(), c.count, kInt}, c.root, c.options);
  for (int owner = 0; owner < size; ++owner) {
    const std::size_t begin = chunk_begin(c.count, size, owner);
    const std::size_t count = chunk_count(c.count, size, owner);
    const Data part(out.begin() + static_cast<std::ptrdiff_t>(begin),
                    out.begin() + static_cast<std::ptrdiff_t>(begin + count));
    expect_elements(
        part, begin, count,
        [&](std::size_t i) { return rank == c.root ? value_of(owner, i) : kUntouched; }, c);
  }
}

void scatter(Communicator& communicator, const Case& c) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  const std::size_t first = chunk_begin(c.count, size, rank);
  const std::size_t mine = chunk_count(c.count, size, rank);
  Data in = given(c.root, 0, rank == c.root ? c.count : 0);
  Data out(mine, kUntouched);
  const bool is_in_place = c.is_in_place && rank == c.root;
  communicator.scatter({in.data(), c.count, kInt},
                       {is_in_place ? in.data() + first : out.data(),
                        chunk_count(c.count, communicator.size(), communicator.rank()), kInt},
                       c.root, c.options);
  if (is_in_place) {
    expect_elements(
        in, 0, c.count, [&](std::size_t i) { return value_of(c.root, i); }, c);
  } else {
    expect_elements(
        out, first, mine, [&](std::size_t i) { return value_of(c.root, i); }, c);
  }
}

void all_to_all(Communicator& communicator, const Case& c) {
  const auto size = static_cast<std::size_t>(communicator.size());
  const std::size_t share = c.count / size;
  const Data in = given(communicator.rank(), 0, share * size);
  Data out(share * size, kUntouched);
  communicator.all_to_all({in.data(), share * size, kInt}, {out.data(), share * size, kInt},
                          c.options);
  const std::size_t first = share * static_cast<std::size_t>(communicator.rank());
  for (int giver = 0; giver < communicator.size(); ++giver) {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(share) * giver;
    expect_elements(
        Data(begin, begin + static_cast<std::ptrdiff_t>(share)), first, share,
        [&](std::size_t i) { return value_of(giver, i); }, c);
  }
}

void scan(Communicator& communicator, const Case& c) {
  const Data in = given(communicator.rank(), 0, c.count);
  Data out = c.is_in_place ? in : Data(c.count, kUntouched);
  communicator.scan({c.is_in_place ? out.data() : in.data(), c.count, kInt},
                    {out.data(), c.count, kInt}, ReduceOp::kSum, c.options);
  expect_elements(
      out, 0, c.count, [&](std::size_t i) { return sum_of(communicator.rank() + 1, i); }, c);
}

void exclusive_scan(Communicator& communicator, const Case& c) {
  const int rank = communicator.rank();
  const Data in = given(rank, 0, c.count);
  Data out = c.is_in_place ? in : Data(c.count, kUntouched);
  communicator.exclusive_scan({c.is_in_place ? out.data() : in.data(), c.count, kInt},
                              {out.data(), c.count, kInt}, ReduceOp::kSum, c.options);
  expect_elements(
      out, 0, c.count,
      [&](std::size_t i) {
        return rank > 0 ? sum_of(rank, i) : c.is_in_place ? value_of(0, i) : kUntouched;
      },
      c);
}

// Counts around every threshold: chunks, the opening segment, and segments of kSegmentBytes.
std::vector<std::size_t> awkward_counts(int size) {
  const auto n = static_cast<std::size_t>(size);
  const std::size_t segment = kSegmentBytes / sizeof(std::int64_t);
  return {0, 1, n - 1, n, 4 * n + 1, n * segment, n * segment + 1, 5 * n * segment + 3};
}

void run_grid(Collective collective, Body body) {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(1, 2, 3, 5);
  CommunicatorOptions options;
  options.segment_bytes = kSegmentBytes;
  run_ranks(
      size, transport,
      [&](Communicator& communicator) {
        for (const std::string_view algorithm : algorithm_names(collective)) {
          for (const std::size_t count : awkward_counts(size)) {
            for (int root = 0; root < (has_root(collective) ? size : 1); ++root) {
              for (const bool is_in_place : {false, true}) {
                body(communicator, {count, root, is_in_place, {algorithm, 0}});
              }
            }
          }
        }
      },
      options);
}

}  // namespace

TEST_CASE("reduce writes the reduction at the root, and nothing elsewhere") {
  run_grid(Collective::kReduce, reduce);
}

TEST_CASE("gather writes all chunks at the root, and nothing elsewhere") {
  run_grid(Collective::kGather, gather);
}

TEST_CASE("scatter gives every rank its chunk") { run_grid(Collective::kScatter, scatter); }

TEST_CASE("all_to_all gives every rank one share of each rank") {
  run_grid(Collective::kAllToAll, all_to_all);
}

TEST_CASE("scan gives every rank the reduction up to itself") { run_grid(Collective::kScan, scan); }

TEST_CASE("exclusive_scan gives every rank the reduction before itself") {
  run_grid(Collective::kExclusiveScan, exclusive_scan);
}

}  // namespace kolo::test
