// Source of the device's reduction kernels, compiled for this machine and run thread by thread:
// edges, tiles, alignments, aliases and arithmetic, without a device.
#include "collectives/reduce/device/pass.inc"
#include "test/collectives/reduce/device_passes.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

using test::PassCase;

template <typename T, typename Step>
void run_blocks(const Task<T>& task) {
  for (std::size_t block = 0; block < blocks_of(task); ++block) {
    for (unsigned thread = 0; thread < kThreads; ++thread) run_thread<T, Step>(task, block, thread);
  }
}

template <typename T>
void run_op(ReduceOp op, const Task<T>& task) {
  if (op == ReduceOp::kSum) return run_blocks<T, Combine<Sum>>(task);
  if (op == ReduceOp::kProduct) return run_blocks<T, Combine<Product>>(task);
  if (op == ReduceOp::kMin) return run_blocks<T, Combine<Min>>(task);
  if (op == ReduceOp::kMax) return run_blocks<T, Combine<Max>>(task);
  if (op == ReduceOp::kAverage) return run_blocks<T, Average>(task);
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::kBitAnd) return run_blocks<T, Combine<BitAnd>>(task);
    if (op == ReduceOp::kBitOr) return run_blocks<T, Combine<BitOr>>(task);
    if (op == ReduceOp::kBitXor) return run_blocks<T, Combine<BitXor>>(task);
  } else {
    if (op == ReduceOp::kScaledSum) return run_blocks<T, ScaleAndSum>(task);
  }
  FAIL("no kernel for " << to_string(op));
}

template <typename T>
constexpr std::size_t kTileElements = kTile<T>* kLanes<T>;

}  // namespace

TEMPLATE_TEST_CASE("the threads of a pass together give the results of the host's kernels", "",
                   KOLO_EVERY_TYPE) {
  for (const ReduceOp op : test::operations<TestType>()) {
    for (const auto& pass : test::cases_of<TestType>(op, kTileElements<TestType>)) {
      test::check_pass<TestType>(pass, [](const PassCase<TestType>& one, std::size_t, TestType* out,
                                          TestType* copy, TestType* local, TestType* incoming) {
        auto task =
            make_task(out + one.shape.out, copy == nullptr ? nullptr : copy + one.shape.copy,
                      local + one.shape.local, incoming + one.shape.incoming, one.shape.count);
        if (one.op == ReduceOp::kAverage) divide_by(task, one.divisor);
        if (one.op == ReduceOp::kScaledSum) multiply_by(task, one.factor);
        run_op(one.op, task);
      });
    }
  }
}

TEMPLATE_TEST_CASE("a scaling pass has the bits of the host's scale and multiply kernels", "",
                   KOLO_EVERY_TYPE) {
  constexpr ElementType kType = kElementTypeOf<TestType>;
  const auto in = test::operands<TestType>(kTileElements<TestType> + 40, 3);
  std::vector<TestType> out(in.size()), expected(in.size());
  const auto run = [&](const auto& prepare) {
    auto task = make_task<TestType>(out.data() + 1, nullptr, in.data() + 1, nullptr, in.size() - 1);
    prepare(task);
    run_blocks<TestType, Scale>(task);
    std::size_t right = 1;
    while (right < in.size() && test::is_same(out[right], expected[right])) ++right;
    REQUIRE(right == in.size());  // otherwise the index of the first wrong element
  };
  for (const int divisor : {2, 3, 7, 64, 1000}) {
    scale_kernel(kType)(expected.data(), in.data(), in.size(), divisor);
    run([&](auto& task) { divide_by(task, divisor); });
  }
  if constexpr (!std::is_integral_v<TestType>) {
    for (const double factor : {1.0, -0.1, 1e-4, 3e6}) {
      multiply_kernel(kType)(expected.data(), in.data(), in.size(), factor);
      run([&](auto& task) { multiply_by(task, factor); });
    }
  }
}

TEST_CASE("an operand's access width is the widest that its alignment allows") {
  alignas(32) const char memory[64] = {};
  const int expected[] = {16, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1, 16, 1};
  for (int i = 0; i < 18; ++i) CHECK(piece_at(memory + i) == expected[i]);
  CHECK(piece_at(nullptr) == 16);
}

}  // namespace kolo
