// Every collective over every transport: ranks, counts, types, operations, in place and out of
// place. Values are small integers, so sums are exact in any order and in every type.
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "test/collectives/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kSegmentBytes = 1024;
constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64,
                                  ElementType::kBFloat16, ElementType::kInt32, ElementType::kInt64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax};

// What rank `rank` gives as element `index`: between -3 and 4, so that bfloat16 holds sums of many
// ranks.
int value_of(int rank, std::size_t index) {
  return static_cast<int>((static_cast<std::size_t>(rank) * 5 + index * 3 + index / 7) % 8) - 3;
}

double reduced(int size, std::size_t index, ReduceOp op) {
  double result = value_of(0, index);
  for (int rank = 1; rank < size; ++rank) {
    const double value = value_of(rank, index);
    if (op == ReduceOp::kMin) result = std::min(result, value);
    if (op == ReduceOp::kMax) result = std::max(result, value);
    if (op == ReduceOp::kSum || op == ReduceOp::kAverage) result += value;
  }
  return op == ReduceOp::kAverage ? result / size : result;
}

// A typed buffer whose elements are read and written as doubles.
class Data {
 public:
  Data(std::size_t count, ElementType type)
      : type_(type), bytes_(count * element_bytes(type) + kGuard, std::byte{0x5a}) {}

  void* at(std::size_t index = 0) { return bytes_.data() + index * element_bytes(type_); }
  std::size_t count() const { return (bytes_.size() - kGuard) / element_bytes(type_); }

  void set(std::size_t index, double value) {
    switch (type_) {
      case ElementType::kFloat32:
        return put(index, static_cast<float>(value));
      case ElementType::kFloat64:
        return put(index, value);
      case ElementType::kBFloat16:
        return put(index, to_bfloat16(static_cast<float>(value)));
      case ElementType::kInt32:
        return put(index, static_cast<std::int32_t>(value));
      case ElementType::kInt64:
        return put(index, static_cast<std::int64_t>(value));
    }
  }

  // Whether element `index` is what the type makes of `value`, bit for bit.
  bool holds(std::size_t index, double value) const {
    Data expected(1, type_);
    expected.set(0, value);
    return std::memcmp(bytes_.data() + index * element_bytes(type_), expected.bytes_.data(),
                       element_bytes(type_)) == 0;
  }

  bool is_guard_whole() const {
    return std::all_of(bytes_.end() - kGuard, bytes_.end(),
                       [](std::byte byte) { return byte == std::byte{0x5a}; });
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 64;

  template <typename T>
  void put(std::size_t index, T value) {
    std::memcpy(bytes_.data() + index * sizeof(T), &value, sizeof(T));
  }

  ElementType type_;
  std::vector<std::byte> bytes_;
};

struct Case {
  std::size_t count = 0;
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = false;
};

std::string name_of(const Case& c) {
  return std::to_string(c.count) + " " + std::string(to_string(c.type)) + " " +
         std::string(to_string(c.op)) + (c.is_in_place ? " in place" : "");
}

Data filled(std::size_t first, std::size_t count, int rank, ElementType type) {
  Data data(count, type);
  for (std::size_t i = 0; i < count; ++i) data.set(i, value_of(rank, first + i));
  return data;
}

template <typename Expected>
void expect_elements(const Data& data, std::size_t first, std::size_t count, const Case& c,
                     const Expected& expected) {
  for (std::size_t i = 0; i < count; ++i) {
    expect(data.holds(i, expected(first + i)),
           name_of(c) + ": element " + std::to_string(first + i));
  }
  expect(data.is_guard_whole(), name_of(c) + ": wrote past the end");
}

void all_reduce(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  Data in = filled(0, c.count, communicator.rank(), c.type);
  Data out = c.is_in_place ? in : Data(c.count, c.type);
  communicator.all_reduce(c.is_in_place ? out.at() : in.at(), out.at(), c.count, c.type, c.op);
  expect_elements(out, 0, c.count, c, [&](std::size_t i) { return reduced(size, i, c.op); });
  if (c.is_in_place) return;
  expect_elements(in, 0, c.count, c,
                  [&](std::size_t i) { return value_of(communicator.rank(), i); });
}

void reduce_scatter(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  const std::size_t first = chunk_begin(c.count, size, communicator.rank());
  const std::size_t mine = chunk_count(c.count, size, communicator.rank());
  Data in = filled(0, c.count, communicator.rank(), c.type);
  Data out(mine, c.type);
  communicator.reduce_scatter(in.at(), c.is_in_place ? in.at(first) : out.at(), c.count, c.type,
                              c.op);
  for (std::size_t i = 0; i < mine; ++i) {
    const double expected = reduced(size, first + i, c.op);
    expect(c.is_in_place ? in.holds(first + i, expected) : out.holds(i, expected),
           name_of(c) + ": element " + std::to_string(i));
  }
}

void all_gather(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  const std::size_t first = chunk_begin(c.count, size, communicator.rank());
  const std::size_t mine = chunk_count(c.count, size, communicator.rank());
  Data in = filled(first, mine, communicator.rank(), c.type);
  Data out(c.count, c.type);
  for (std::size_t i = 0; i < mine; ++i)
    out.set(first + i, value_of(communicator.rank(), first + i));
  communicator.all_gather(c.is_in_place ? out.at(first) : in.at(), out.at(), c.count, c.type);
  for (int rank = 0; rank < size; ++rank) {
    const std::size_t begin = chunk_begin(c.count, size, rank);
    for (std::size_t i = begin; i < chunk_begin(c.count, size, rank + 1); ++i) {
      expect(out.holds(i, value_of(rank, i)), name_of(c) + ": element " + std::to_string(i));
    }
  }
}

void broadcast(Communicator& communicator, const Case& c) {
  for (int root = 0; root < communicator.size(); ++root) {
    Data data =
        communicator.rank() == root ? filled(0, c.count, root, c.type) : Data(c.count, c.type);
    communicator.broadcast(data.at(), c.count, c.type, root);
    expect_elements(data, 0, c.count, c, [&](std::size_t i) { return value_of(root, i); });
  }
}

using Body = void (*)(Communicator&, const Case&);

// Counts around every threshold: chunks, the opening segment, and segments of kSegmentBytes.
std::vector<std::size_t> awkward_counts(int size) {
  const auto n = static_cast<std::size_t>(size);
  const std::size_t segment = kSegmentBytes / 4;
  return {0,
          1,
          n - 1,
          n,
          n + 1,
          10 * n,
          10 * n + 1,
          997,
          n * segment,
          n * segment + 1,
          n * segment - 1,
          3 * n * segment + 5};
}

void run_grid(Body body) {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(1, 2, 3, 5);
  CommunicatorOptions options;
  options.segment_bytes = kSegmentBytes;
  run_ranks(
      size, transport,
      [&](Communicator& communicator) {
        for (const std::size_t count : awkward_counts(size)) {
          for (const bool is_in_place : {false, true}) {
            for (const ElementType type : kTypes) {
              for (const ReduceOp op : kOps) body(communicator, {count, type, op, is_in_place});
            }
          }
        }
      },
      options);
}

}  // namespace

TEST_CASE("all_reduce gives every rank the reduction of all") { run_grid(all_reduce); }

TEST_CASE("reduce_scatter gives every rank its chunk of the reduction") {
  run_grid(reduce_scatter);
}

TEST_CASE("all_gather gives every rank all chunks") { run_grid(all_gather); }

TEST_CASE("broadcast gives every rank the root's data, whoever that is") { run_grid(broadcast); }

}  // namespace kolo::test
