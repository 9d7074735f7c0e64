// Bits of float reductions. With kInvariant they are those of a plain loop over the ranks, for
// every algorithm and layout. With kOrdered they are the same in every run.
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::uint32_t kSeed = 20261120;
constexpr std::size_t kCount = 1003;

using Bytes = std::vector<std::byte>;

// Numbers of very different magnitudes and both signs: nearly every sum depends on the order.
Bytes contribution(int rank, ElementType type) {
  std::mt19937 random(kSeed + static_cast<std::uint32_t>(rank));
  std::uniform_real_distribution<float> mantissa(-2.0F, 2.0F);
  std::uniform_int_distribution<int> exponent(-6, 6);
  Bytes bytes(kCount * element_bytes(type));
  for (std::size_t i = 0; i < kCount; ++i) {
    const float value = std::ldexp(mantissa(random), exponent(random));
    std::byte* to = bytes.data() + i * element_bytes(type);
    const auto put = [&](const auto& element) { std::memcpy(to, &element, sizeof(element)); };
    if (type == ElementType::kFloat32) put(value);
    if (type == ElementType::kFloat64) put(static_cast<double>(value) / 3);
    if (type == ElementType::kBFloat16) put(to_bfloat16(value));
    if (type == ElementType::kFloat16) put(to_float16(value));
    if (type == ElementType::kFloat8E4M3) put(to_float8_e4m3(value));
  }
  return bytes;
}

// ((x0 op x1) op x2) ..., with the kernel that every algorithm uses.
Bytes folded(int size, ElementType type, ReduceOp op) {
  Bytes sum = contribution(0, type);
  for (int rank = 1; rank < size; ++rank) {
    const Bytes next = contribution(rank, type);
    const int divisor = op == ReduceOp::kAverage && rank == size - 1 ? size : 1;
    reduce_kernel(type, op)(sum.data(), nullptr, sum.data(), next.data(), kCount, divisor);
  }
  return sum;
}

struct Case {
  ElementType type;
  ReduceOp op;
};
constexpr Case kCases[] = {
    {ElementType::kFloat32, ReduceOp::kSum},     {ElementType::kFloat32, ReduceOp::kAverage},
    {ElementType::kFloat64, ReduceOp::kSum},     {ElementType::kBFloat16, ReduceOp::kSum},
    {ElementType::kFloat16, ReduceOp::kProduct}, {ElementType::kFloat8E4M3, ReduceOp::kSum}};

CommunicatorOptions in_mode(Reproducibility mode) {
  CommunicatorOptions options;
  options.reproducibility = mode;
  return options;
}

// The algorithms allowed with kInvariant; of two ranks all.
std::vector<std::string> names_that_may(Collective collective, int size) {
  std::vector<std::string> names = {""};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective && (size <= 2 || algorithm.is_rank_ordered)) {
      names.emplace_back(algorithm.name);
    }
  }
  return names;
}

// Splits the data into `buckets` buckets, with one operation each.
template <typename Reduce>
void in_buckets(int buckets, const Reduce& reduce) {
  for (int bucket = 0; bucket < buckets; ++bucket) {
    reduce(chunk_begin(kCount, buckets, bucket), chunk_count(kCount, buckets, bucket));
  }
}

void expect_bits(const Bytes& found, const Bytes& wanted, const std::string& what) {
  expect(found == wanted, what + " has other bits than ((x0 op x1) op x2) ...");
}

void check_all_reduce(Communicator& communicator, const Case& of, const Bytes& wanted) {
  const Bytes in = contribution(communicator.rank(), of.type);
  const std::size_t width = element_bytes(of.type);
  for (const std::string& name : names_that_may(Collective::kAllReduce, communicator.size())) {
    for (const std::size_t segment : {std::size_t{0}, std::size_t{64}, std::size_t{1024}}) {
      for (const int buckets : {1, 2, 7}) {
        Bytes out(in.size());
        in_buckets(buckets, [&](std::size_t begin, std::size_t count) {
          communicator.all_reduce({in.data() + begin * width, count, of.type},
                                  {out.data() + begin * width, count, of.type}, of.op,
                                  {.algorithm = name, .segment_bytes = segment});
        });
        expect_bits(out, wanted, "all_reduce by '" + name + "' in " + std::to_string(buckets));
      }
    }
  }
}

// A temporary file.
class File {
 public:
  File() : path_((std::filesystem::temp_directory_path() / "kolo-tuning-XXXXXX").string()) {
    const int made = mkstemp(path_.data());
    if (made < 0) throw std::runtime_error("no file " + path_);
    close(made);
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  std::string path_;
};

// The other collectives that reduce over all ranks, with every allowed algorithm.
void check_others(Communicator& communicator, const Case& of, const Bytes& wanted) {
  const Bytes in = contribution(communicator.rank(), of.type);
  const int size = communicator.size();
  for (const std::string& name : names_that_may(Collective::kReduceScatter, size)) {
    Bytes shares(in.size());
    communicator.reduce_scatter(
        {in.data(), kCount, of.type},
        {shares.data(), chunk_count(kCount, communicator.size(), communicator.rank()), of.type},
        of.op, {.algorithm = name});
    Bytes out(in.size());
    communicator.all_gather(
        {shares.data(), chunk_count(kCount, communicator.size(), communicator.rank()), of.type},
        {out.data(), kCount, of.type});
    expect_bits(out, wanted, "reduce_scatter by '" + name + "'");
  }
  if (of.op != ReduceOp::kAverage) {
    Bytes out(in.size());
    communicator.scan({in.data(), kCount, of.type}, {out.data(), kCount, of.type}, of.op);
    expect_bits(out, folded(communicator.rank() + 1, of.type, of.op), "scan");
  }
  for (const std::string& name : names_that_may(Collective::kReduce, size)) {
    const int root = size - 1;
    Bytes out(in.size());
    communicator.reduce({in.data(), kCount, of.type}, {out.data(), kCount, of.type}, root, of.op,
                        {.algorithm = name});
    if (communicator.rank() == root) expect_bits(out, wanted, "reduce by '" + name + "'");
  }
  for (const std::string& name : names_that_may(Collective::kPushPull, size)) {
    Bytes out(in.size());
    communicator.push_pull({in.data(), kCount, of.type}, {out.data(), kCount, of.type}, of.op,
                           {.everywhere = true, .servers = {}}, {}, {.algorithm = name});
    expect_bits(out, wanted, "push_pull by '" + name + "'");
  }
}

}  // namespace

TEST_CASE("invariant: all algorithms, segments, transports and buckets give the same bits") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(from_range(all_or_few({1, 2, 3, 5, 8}, {1, 2, 5})));
  INFO("seed " << kSeed);
  for (const Case& of : kCases) {
    const Bytes wanted = folded(size, of.type, of.op);
    run_ranks(
        size, transport,
        [&](Communicator& communicator) {
          check_all_reduce(communicator, of, wanted);
          check_others(communicator, of, wanted);
        },
        in_mode(Reproducibility::kInvariant));
  }
}

TEST_CASE("the data of these tests depend on the order of the sum") {
  const auto type = ElementType::kFloat32;
  const ReduceKernel sum = reduce_kernel(type, ReduceOp::kSum);
  Bytes backwards = contribution(4, type);
  for (int rank = 3; rank >= 0; --rank) {
    const Bytes next = contribution(rank, type);
    sum(backwards.data(), nullptr, backwards.data(), next.data(), kCount, 1);
  }
  CHECK(backwards != folded(5, type, ReduceOp::kSum));
}

TEST_CASE("invariant: an algorithm with another order is refused if the order matters") {
  run_ranks(
      3, "inproc",
      [](Communicator& communicator) {
        std::vector<float> data(10, 1.0F);
        const auto reduce = [&](ElementType type, ReduceOp op) {
          return outcome_of([&] {
            communicator.all_reduce({data.data(), data.size(), type}, op, {.algorithm = "ring"});
          });
        };
        const RankOutcome refused = reduce(ElementType::kFloat32, ReduceOp::kSum);
        expect(refused.is_bug, "a ring's sum of floats is refused");
        expect(refused.text.find("these do: two_shot, one_shot") != std::string::npos,
               "those that can are named: " + refused.text);
        expect(reduce(ElementType::kFloat32, ReduceOp::kMax).text.empty(), "max is not");
        expect(reduce(ElementType::kInt32, ReduceOp::kSum).text.empty(), "integers are not");
      },
      in_mode(Reproducibility::kInvariant));
}

TEST_CASE("ordered: every run has the same bits and the same prices") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(2, 5);
  INFO("seed " << kSeed);
  std::mutex mutex;
  std::set<std::string> results;
  std::set<std::vector<double>> prices;
  for (int run = 0; run < 3; ++run) {
    run_ranks(
        size, transport,
        [&](Communicator& communicator) {
          Bytes data = contribution(communicator.rank(), ElementType::kFloat32);
          communicator.all_reduce({data.data(), kCount, ElementType::kFloat32}, ReduceOp::kSum);
          std::vector<double> times;
          for (const Prediction& of : communicator.predict(Collective::kAllReduce, data.size())) {
            times.push_back(of.time_us);
          }
          const std::lock_guard lock(mutex);
          results.emplace(reinterpret_cast<const char*>(data.data()), data.size());
          prices.insert(times);
        },
        in_mode(Reproducibility::kOrdered));
  }
  CHECK(results.size() == 1);
  CHECK(prices.size() == 1);
}

TEST_CASE("ranks with different modes get an error") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options =
        in_mode(rank == 0 ? Reproducibility::kFast : Reproducibility::kOrdered);
    options.transport = "inproc";
    Communicator communicator(rank, 2, store, options);
    communicator.barrier();
  });
  for (const RankOutcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::kMismatch);
    CHECK_THAT(outcome.text,
               ContainsSubstring("rank 0 requests fast results, rank 1 requests ordered results"));
  }
}

TEST_CASE("an invalid timeout or mode is refused, and the longest timeout works") {
  CommunicatorOptions options;
  options.transport = "inproc";
  const auto make = [&] { Communicator(0, 1, make_local_store(), options).barrier(); };
  options.timeout = std::chrono::milliseconds(-5);
  CHECK_THROWS_WITH(make(), ContainsSubstring("give more than 0"));
  options.timeout = std::chrono::milliseconds::max();
  run_ranks(
      2, "inproc", [](Communicator& communicator) { communicator.barrier(); }, options);
  options.reproducibility = static_cast<Reproducibility>(9);
  CHECK_THROWS_WITH(make(), ContainsSubstring("9 is not a mode"));
}

TEST_CASE("a tuning table overrules the planner, and all ranks report an invalid one at once") {
  const File table;
  CommunicatorOptions options;
  options.tuning = table.path();
  table.write("all_reduce 3 inproc 1024 double_tree\n");
  run_ranks(
      3, "inproc",
      [](Communicator& communicator) {
        expect(communicator.algorithm(Collective::kAllReduce, 8) == "double_tree", "as the table");
        Communicator group = communicator.duplicate();
        expect(group.algorithm(Collective::kAllReduce, 8) == "double_tree", "a group, too");
      },
      options);
  table.write("all_reduce 3 inproc 1024 double_three\n");
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions mine = options;
    mine.transport = "inproc";
    Communicator communicator(rank, 2, store, mine);
  });
  CHECK(outcomes[0].is_bug);
  for (const RankOutcome& outcome : outcomes) {
    CHECK_THAT(outcome.text, ContainsSubstring("line 1: all_reduce: no algorithm 'double_three'"));
  }
}

}  // namespace kolo::test
