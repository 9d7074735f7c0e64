// Small socket buffers (4 KiB): sent data stays in a channel's own slots. Every algorithm must
// still complete, with full-length segments in both directions.
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "transports/settings.h"

namespace kolo::test {
namespace {

// Per rank: several segments of each chunk. With a sanitizer, of a fourth of the usual length.
constexpr std::size_t kCount = kIsSanitized ? 150'000 : 600'000;
constexpr std::size_t kSegmentBytes = kIsSanitized ? 64 << 10 : 0;  // 0: the planner's choice
constexpr auto kType = ElementType::kInt32;

std::int32_t given(int rank, std::size_t i) {
  return static_cast<std::int32_t>(i % 1009) * (rank + 1);
}

std::vector<std::int32_t> gifts(int rank, std::size_t count = kCount) {
  std::vector<std::int32_t> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = given(rank, i);
  return data;
}

std::int32_t sum_of(int size, std::size_t i) { return given(size * (size + 1) / 2 - 1, i); }

void expect_sums(const std::vector<std::int32_t>& found, std::size_t first, int size) {
  for (std::size_t i = 0; i < found.size(); ++i)
    expect(found[i] == sum_of(size, first + i),
           [&] { return "element " + std::to_string(first + i); });
}

void run_one(Communicator& c, Collective collective, const CallOptions& options) {
  const int size = c.size();
  const std::size_t first = chunk_begin(kCount, size, c.rank());
  const std::size_t share = chunk_count(kCount, size, c.rank());
  auto data = gifts(c.rank());
  if (collective == Collective::kAllReduce) {
    c.all_reduce({data.data(), kCount, kType}, ReduceOp::kSum, options);
    expect_sums(data, 0, size);
  } else if (collective == Collective::kReduceScatter) {
    std::vector<std::int32_t> out(share);
    c.reduce_scatter({data.data(), kCount, kType},
                     {out.data(), chunk_count(kCount, c.size(), c.rank()), kType}, ReduceOp::kSum,
                     options);
    expect_sums(out, first, size);
  } else if (collective == Collective::kAllGather) {
    std::vector<std::int32_t> out(kCount);
    const auto all = gifts(0);
    c.all_gather({all.data() + first, chunk_count(kCount, c.size(), c.rank()), kType},
                 {out.data(), kCount, kType}, options);
    expect(out == all, "what was gathered");
  } else if (collective == Collective::kAllToAll) {
    c.all_to_all({data.data(), kCount, kType}, {data.data(), kCount, kType}, options);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto from = static_cast<int>(i / share);
      expect(data[i] == given(from, first + i % share),
             [&] { return "element " + std::to_string(i); });
    }
  } else if (collective == Collective::kBroadcast) {
    c.broadcast({data.data(), kCount, kType}, size - 1, options);
    expect(data == gifts(size - 1), "what was broadcast");
  } else if (collective == Collective::kReduce) {
    c.reduce({data.data(), kCount, kType}, 0, ReduceOp::kSum, options);
    if (c.rank() == 0) expect_sums(data, 0, size);
  }
}

}  // namespace

TEST_CASE("every algorithm completes with tiny socket buffers") {
  set_setting("KOLO_TCP_BUFFERS", "4096");
  REQUIRE(read_settings().tcp_buffer_bytes == 4096);
  const auto size = GENERATE(from_range(all_or_few({2, 4, 5}, {2, 5})));
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.is_for_hosts || has_servers(algorithm.collective)) continue;
    INFO(to_string(algorithm.collective) << " " << algorithm.name << ", " << size << " ranks");
    run_ranks(size, "tcp", [&algorithm](Communicator& communicator) {
      run_one(communicator, algorithm.collective,
              {.algorithm = algorithm.name, .segment_bytes = kSegmentBytes});
    });
    SUCCEED();
  }
  set_setting("KOLO_TCP_BUFFERS", "");
}

}  // namespace kolo::test
