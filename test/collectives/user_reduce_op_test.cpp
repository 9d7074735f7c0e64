// Reductions by user functions: elements of any length, commutative functions and others, over
// every transport and by every allowed algorithm.
#include "collectives/user_reduce_op.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kSegmentBytes = 1024;

// x -> a x + b, in numbers that wrap; of 3, 6, 12 or 24 bytes. Composition of two such functions
// gives another one: it is associative, and not commutative.
template <typename Number>
struct Affine {
  Number a = 0;
  Number b = 0;
  Number contributions = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};

template <typename Number>
Affine<Number> one_after_the_other(const Affine<Number>& first, const Affine<Number>& then) {
  return {static_cast<Number>(1U * first.a * then.a),
          static_cast<Number>(1U * first.b * then.a + then.b),
          static_cast<Number>(first.contributions + then.contributions)};
}

template <typename Number>
Affine<Number> sum_and_greatest(const Affine<Number>& one, const Affine<Number>& other) {
  return {static_cast<Number>(one.a + other.a), std::max(one.b, other.b),
          static_cast<Number>(one.contributions + other.contributions)};
}

template <typename Number>
Affine<Number> given(int rank, std::size_t index) {
  const auto r = static_cast<std::size_t>(rank);
  return {static_cast<Number>(2 * ((r * 7 + index) % 50) + 1),
          static_cast<Number>(r * 31 + index * 3 + 1), 1};
}

struct Case {
  Collective collective = Collective::kAllReduce;
  std::size_t count = 0;
  bool is_in_place = false;
  bool is_commutative = true;
  std::string_view algorithm = {};
  int root = 0;
};

template <typename Number>
Affine<Number> combined(bool is_commutative, const Affine<Number>& one,
                        const Affine<Number>& other) {
  return is_commutative ? sum_and_greatest(one, other) : one_after_the_other(one, other);
}

template <typename Number>
UserReduceOp reducer_of(const Case& c) {
  return make_user_reduce_op<Affine<Number>>(
      [is_commutative = c.is_commutative](const auto& one, const auto& other) {
        return combined<Number>(is_commutative, one, other);
      },
      c.is_commutative);
}

void call(Communicator& communicator, const Case& c, const void* in, void* out,
          const UserReduceOp& reducer) {
  const CallOptions options{.algorithm = c.algorithm};
  const ConstBuffer all(in, c.count, reducer);
  const Buffer to(out, c.count, reducer);
  const Buffer chunk(out, chunk_count(c.count, communicator.size(), communicator.rank()), reducer);
  switch (c.collective) {
    case Collective::kAllReduce:
      return communicator.all_reduce(all, to, reducer, options);
    case Collective::kReduceScatter:
      return communicator.reduce_scatter(all, chunk, reducer, options);
    case Collective::kReduce:
      return communicator.reduce(all, to, c.root, reducer, options);
    case Collective::kScan:
      return communicator.scan(all, to, reducer, options);
    case Collective::kExclusiveScan:
      return communicator.exclusive_scan(all, to, reducer, options);
    case Collective::kPush:
      return communicator.push(all, chunk, reducer, {.everywhere = true, .servers = {}}, {},
                               options);
    default:
      return communicator.push_pull(all, to, reducer, {.everywhere = true, .servers = {}}, {},
                                    options);
  }
}

constexpr Collective kReductions[] = {
    Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce, Collective::kScan,
    Collective::kPushPull,  Collective::kExclusiveScan, Collective::kPush};

// The expected result of this rank: the reduction over the first `ranks` ranks of the elements from
// `begin` on.
struct Share {
  int ranks = 0;
  std::size_t begin = 0;
  std::size_t count = 0;
};

Share share_of(const Communicator& communicator, const Case& c) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  switch (c.collective) {
    case Collective::kReduceScatter:
    case Collective::kPush:
      return {size, chunk_begin(c.count, size, rank), chunk_count(c.count, size, rank)};
    case Collective::kReduce:
      return {size, 0, rank == c.root ? c.count : 0};
    case Collective::kScan:
      return {rank + 1, 0, c.count};
    case Collective::kExclusiveScan:
      return {rank, 0, rank == 0 ? 0 : c.count};
    default:
      return {size, 0, c.count};
  }
}

template <typename Number>
void run(Communicator& communicator, const Case& c) {
  using Element = Affine<Number>;
  std::vector<Element> in;
  for (std::size_t i = 0; i < c.count; ++i) in.push_back(given<Number>(communicator.rank(), i));
  const Share share = share_of(communicator, c);
  std::vector<Element> apart(share.count);
  Element* out = c.is_in_place ? in.data() + share.begin : apart.data();
  call(communicator, c, in.data(), share.count == 0 ? nullptr : out, reducer_of<Number>(c));
  for (std::size_t i = 0; i < share.count; ++i) {
    Element expected = given<Number>(0, share.begin + i);
    for (int rank = 1; rank < share.ranks; ++rank) {
      expected = combined(c.is_commutative, expected, given<Number>(rank, share.begin + i));
    }
    if (out[i] == expected) continue;
    expect(false, std::string(to_string(c.collective)) + " " + std::string(c.algorithm) + " of " +
                      std::to_string(c.count) + " elements of " + std::to_string(sizeof(Element)) +
                      " bytes" + (c.is_in_place ? " in place" : "") +
                      (c.is_commutative ? "" : ", not commutative") + ": element " +
                      std::to_string(i));
  }
}

template <typename Number>
void run_counts(Communicator& communicator, Case c) {
  const auto n = static_cast<std::size_t>(communicator.size());
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, n + 1, std::size_t{331}, 3 * n * 43 + 5}) {
    for (const bool is_in_place : {false, true}) {
      c.count = count;
      c.is_in_place = is_in_place;
      run<Number>(communicator, c);
    }
  }
}

void run_rows(Communicator& communicator) {
  for (const Algorithm& row : algorithms()) {
    if (!is_reduction(row.collective)) continue;
    for (const bool is_commutative : {true, false}) {
      if (!is_commutative && !row.is_in_order) continue;
      Case c{row.collective, 0, false, is_commutative, row.name, communicator.size() / 2};
      run_counts<std::uint8_t>(communicator, c);
      run_counts<std::uint32_t>(communicator, c);
      run_counts<std::uint64_t>(communicator, c);
    }
  }
}

CommunicatorOptions short_segments() {
  CommunicatorOptions options;
  options.segment_bytes = kSegmentBytes;
  return options;
}

}  // namespace

TEST_CASE("a user function reduces in every collective, by every allowed algorithm") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(from_range(all_or_few({1, 2, 3, 5, 8}, {1, 2, 5})));
  run_ranks(size, transport, run_rows, short_segments());
}

TEST_CASE("a function that does not commute runs by an algorithm that keeps the order by default") {
  const auto size = GENERATE(1, 3, 4);
  run_ranks(size, "inproc", [](Communicator& communicator) {
    for (const Collective collective : kReductions) {
      run_counts<std::uint32_t>(communicator, {collective, 0, false, false, {}, 0});
    }
  });
}

TEST_CASE("a user function reduces uneven shares") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    const std::size_t counts[] = {5, 0, 200};
    std::vector<Affine<std::uint32_t>> in, out(200);
    for (std::size_t i = 0; i < 205; ++i)
      in.push_back(given<std::uint32_t>(communicator.rank(), i));
    const UserReduceOp reducer = reducer_of<std::uint32_t>({.is_commutative = false});
    const std::size_t mine = counts[static_cast<std::size_t>(communicator.rank())];
    communicator.reduce_scatter_v(in, std::span(out).first(mine), counts, reducer);
    if (communicator.rank() != 2) return;
    Affine<std::uint32_t> expected = given<std::uint32_t>(0, 204);
    for (int rank = 1; rank < 3; ++rank) {
      expected = one_after_the_other(expected, given<std::uint32_t>(rank, 204));
    }
    expect(out[199] == expected, "the last element");
  });
}

TEST_CASE("a server's update gets elements of the function's length") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    std::vector<Affine<std::uint32_t>> data(100, {1, 2, 1});
    const bool serves = communicator.rank() == 1;
    auto* mine = serves ? nullptr : data.data();
    const UserReduceOp reducer = reducer_of<std::uint32_t>({});
    std::size_t seen = 0;
    communicator.push_pull(
        {mine, data.size(), reducer}, {mine, data.size(), reducer}, reducer,
        {.everywhere = false, .servers = {1}}, [&](std::size_t first, std::span<std::byte> sums) {
          expect(first == seen && sums.size() % 12 == 0, "whole elements, in a row");
          seen += sums.size() / 12;
        });
    expect(seen == (serves ? 100U : 0U), "every element once");
    if (!serves) expect(data[99] == Affine<std::uint32_t>{2, 2, 2}, "the sum");
  });
}

TEST_CASE("elements are aligned as they need, up to 8 bytes") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(3, transport, [](Communicator& communicator) {
    UserReduceOp reducer;
    reducer.element_bytes = 8;
    reducer.combine = [](void* out, const void* left, const void* right, std::size_t count) {
      for (const void* at : {static_cast<const void*>(out), left, right}) {
        if (reinterpret_cast<std::uintptr_t>(at) % 8 != 0) throw std::runtime_error("misaligned");
      }
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<std::uint64_t*>(out)[i] = static_cast<const std::uint64_t*>(left)[i] +
                                              static_cast<const std::uint64_t*>(right)[i];
      }
    };
    for (const std::size_t count : std::initializer_list<std::size_t>{1, 3, 100, 20'000}) {
      for (const std::string_view algorithm : algorithm_names(Collective::kAllReduce)) {
        std::vector<std::uint64_t> data(count, 1);
        communicator.all_reduce({data.data(), count, reducer}, reducer, {.algorithm = algorithm});
        expect(data.back() == 3, "the sum");
      }
    }
  });
}

TEST_CASE("an asynchronous and a persistent operation keep their reducer alive") {
  const auto has_thread = GENERATE(false, true);
  CommunicatorOptions options;
  options.progress_thread = has_thread;
  run_ranks(
      2, "inproc",
      [](Communicator& communicator) {
        const auto sum = [](int one, int other) { return one + other; };
        int now = 1, later = 1, again = 1;
        auto reducer = std::make_unique<UserReduceOp>(make_user_reduce_op<int>(sum));
        Work work = communicator.all_reduce_async({&now, 1, *reducer}, *reducer);
        Work planned = communicator.scan_async({&again, 1, *reducer}, {&later, 1, *reducer},
                                               *reducer, {.algorithm = {}, .is_persistent = true});
        reducer.reset();
        work.wait();
        expect(now == 2, "asynchronous");
        for (again = 1; again < 4; ++again) {
          planned.start();
          planned.wait();
          expect(later == again * (communicator.rank() + 1), "persistent");
        }
      },
      options);
}

}  // namespace kolo::test
