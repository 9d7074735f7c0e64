// Grid test of streams over a fake machine: every collective by every algorithm gives on streams
// what the same communicator gives on the host.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using Bytes = std::vector<std::byte>;

// Segments of 576 bytes, so that a chunk takes several segments.
class ShortSegments {
 public:
  ShortSegments() { ::setenv("KOLO_SEGMENT_BYTES", "576", 1); }
  ~ShortSegments() { ::unsetenv("KOLO_SEGMENT_BYTES"); }
};

struct Case {
  Collective collective = Collective::kAllReduce;
  std::string_view algorithm = {};
  std::size_t count = 0;
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = false;
};

// One call of the collective. `in` and `out` hold count elements, or more where that is simpler.
void call(Communicator& by, const Case& c, std::byte* in, std::byte* out,
          const CallOptions& options) {
  const ServerPlan everywhere{true, {}};
  const std::size_t width = element_bytes(c.type);
  const std::size_t mine = chunk_begin(c.count, by.size(), by.rank()) * width;
  std::byte* const to = c.is_in_place ? in : out;
  std::byte* const to_mine = c.is_in_place ? in + mine : out;
  const std::byte* const from_mine = c.is_in_place ? in + mine : in;
  const int root = by.size() / 2;
  switch (c.collective) {
    case Collective::kAllReduce:
      return by.all_reduce({in, c.count, c.type}, {to, c.count, c.type}, c.op, options);
    case Collective::kReduceScatter:
      return by.reduce_scatter({in, c.count, c.type},
                               {to_mine, chunk_count(c.count, by.size(), by.rank()), c.type}, c.op,
                               options);
    case Collective::kAllGather:
      return by.all_gather({from_mine, chunk_count(c.count, by.size(), by.rank()), c.type},
                           {to, c.count, c.type}, options);
    case Collective::kBroadcast:
      return by.broadcast({in, c.count, c.type}, root, options);
    case Collective::kBarrier:
      return by.barrier(options);
    case Collective::kPushPull:
      return by.push_pull({in, c.count, c.type}, {to, c.count, c.type}, c.op, everywhere, {},
                          options);
    case Collective::kPush:
      return by.push({in, c.count, c.type},
                     {to_mine, chunk_count(c.count, by.size(), by.rank()), c.type}, c.op,
                     everywhere, {}, options);
    case Collective::kPull:
      return by.pull({from_mine, chunk_count(c.count, by.size(), by.rank()), c.type},
                     {to, c.count, c.type}, everywhere, options);
    case Collective::kReduce:
      return by.reduce({in, c.count, c.type}, {to, c.count, c.type}, root, c.op, options);
    case Collective::kGather:
      return by.gather({from_mine, chunk_count(c.count, by.size(), by.rank()), c.type},
                       {to, c.count, c.type}, root, options);
    case Collective::kScatter:
      return by.scatter({in, c.count, c.type},
                        {to_mine, chunk_count(c.count, by.size(), by.rank()), c.type}, root,
                        options);
    case Collective::kAllToAll:
      return by.all_to_all({in, c.count, c.type}, {to, c.count, c.type}, options);
    case Collective::kScan:
      return by.scan({in, c.count, c.type}, {to, c.count, c.type}, c.op, options);
    case Collective::kExclusiveScan:
      return by.exclusive_scan({in, c.count, c.type}, {to, c.count, c.type}, c.op, options);
    case Collective::kMessage:
      if (by.rank() == 0 && by.size() > 1) by.send({in, c.count, c.type}, 1, options);
      if (by.rank() == 1) by.receive({out, c.count, c.type}, 0, options);
      return;
  }
}

// Numbers from 0 to 3, as small numbers in every type.
Bytes given(int rank, const Case& c, int salt) {
  Bytes bytes(c.count * element_bytes(c.type));
  for (std::size_t i = 0; i < c.count; ++i) {
    const int value = static_cast<int>((i * 5 + static_cast<std::size_t>(rank * 3 + salt)) % 4);
    std::byte* const at = bytes.data() + i * element_bytes(c.type);
    if (c.type == ElementType::kFloat32) {
      const auto number = static_cast<float>(value);
      std::memcpy(at, &number, sizeof(number));
    } else if (c.type == ElementType::kBFloat16) {
      const BFloat16 number = to_bfloat16(static_cast<float>(value));
      std::memcpy(at, &number, sizeof(number));
    } else {
      *at = static_cast<std::byte>(value);
    }
  }
  return bytes;
}

std::string describe(const Case& c, int size) {
  return std::to_string(size) + " ranks: " + std::string(to_string(c.collective)) + " by " +
         std::string(c.algorithm) + " of " + std::to_string(c.count) + " " +
         std::string(to_string(c.type)) + (c.is_in_place ? " in place" : "");
}

std::string difference(const char* name, const Bytes& found, const Bytes& wanted) {
  std::size_t at = 0;
  while (at < found.size() && found[at] == wanted[at]) ++at;
  if (at == found.size()) return "";
  return std::string(": ") + name + " differs at byte " + std::to_string(at) + ": " +
         std::to_string(static_cast<int>(found[at])) + ", not " +
         std::to_string(static_cast<int>(wanted[at]));
}

// Device memory that lives through all calls: peers may keep it open until the end.
struct Places {
  explicit Places(const StreamRank& rank, std::size_t bytes)
      : in(rank.has_device() ? rank.upload(Bytes(bytes)) : nullptr),
        out(rank.has_device() ? rank.upload(Bytes(bytes)) : nullptr) {}
  std::byte* in;
  std::byte* out;
};

// Runs on the host first, then on the stream with the same data.
void compare(const StreamRank& rank, const Places& places, const Case& c) {
  Bytes in = given(rank.communicator.rank(), c, 0);
  Bytes out = given(rank.communicator.rank(), c, 1);
  CallOptions options;
  options.algorithm = c.algorithm;
  Bytes host_in = in;
  Bytes host_out = out;
  call(rank.communicator, c, host_in.data(), host_out.data(), options);
  if (!rank.has_device()) {
    call(rank.communicator, c, in.data(), out.data(), options);
  } else {
    std::ranges::copy(in, places.in);
    std::ranges::copy(out, places.out);
    options.stream = DeviceStream{rank.stream};
    call(rank.communicator, c, places.in, places.out, options);
    rank.synchronize();
    std::copy_n(places.in, in.size(), in.data());
    std::copy_n(places.out, out.size(), out.data());
  }
  const std::string what = describe(c, rank.communicator.size());
  expect(in == host_in, [&] { return what + difference("in", in, host_in); });
  expect(out == host_out, [&] { return what + difference("out", out, host_out); });
}

bool can_be_in_place(Collective collective) {
  return collective != Collective::kBroadcast && collective != Collective::kBarrier &&
         collective != Collective::kMessage;
}

constexpr std::size_t kCounts[] = {0, 1, 7, 64, 2003};
constexpr std::size_t kFewCounts[] = {7, 2003};  // where the same code runs over another transport

void compare_all(const StreamRank& rank, std::span<const std::size_t> counts = kCounts) {
  constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kInt8,
                                    ElementType::kBFloat16};
  const Places places(rank, 2003 * sizeof(float));
  std::size_t turn = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (std::size_t count : counts) {
      const auto size = static_cast<std::size_t>(rank.communicator.size());
      if (algorithm.collective == Collective::kAllToAll) count = count / size * size;
      for (const bool is_in_place : {false, true}) {
        if (is_in_place && !can_be_in_place(algorithm.collective)) continue;
        compare(rank, places,
                {algorithm.collective, algorithm.name, count, kTypes[turn++ % 3], ReduceOp::kSum,
                 is_in_place});
      }
    }
  }
}

}  // namespace

TEST_CASE("every algorithm gives the host's results on streams, through communicators") {
  const ShortSegments segments;
  for (const int size : {1, 2, 3, 5}) {
    StreamJob job;
    job.size = size;
    run_stream_ranks(job, [](const StreamRank& rank) {
      if (rank.communicator.size() > 1) expect(rank.communicator.transport() == "cuda_ipc", "auto");
      compare_all(rank);
    });
  }
}

TEST_CASE("ranks with and without a device work in one communicator, with equal results") {
  const ShortSegments segments;
  for (const std::vector<int>& hosts : {std::vector<int>{1}, std::vector<int>{0, 2}}) {
    StreamJob job;
    job.size = 3;
    job.hosts = hosts;
    run_stream_ranks(job, [](const StreamRank& rank) {
      expect(rank.communicator.transport() == "inproc", "not staged");
      compare_all(rank);
    });
  }
}

TEST_CASE("every algorithm is staged over every transport, also for a rank without a device") {
  const ShortSegments segments;
  const std::string transport = GENERATE(from_range(staged_transports()));
  INFO(transport);
  StreamJob job;
  job.size = 3;
  job.hosts = {1};
  job.options.transport = transport;
  run_stream_ranks(job, [&transport](const StreamRank& rank) {
    expect(rank.communicator.transport() == transport, "another transport");
    compare_all(rank, kFewCounts);
  });
}

TEST_CASE("unconnected devices and a named transport are staged") {
  const std::string transport = GENERATE(from_range(staged_transports()));
  INFO(transport);
  StreamJob job;
  job.size = 3;
  job.options.transport = transport;
  run_stream_ranks(job, [&transport](const StreamRank& rank) {
    expect(rank.communicator.transport() == transport, "another transport");
    const Places places(rank, 300'000 * sizeof(float));
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather,
                                        Collective::kBroadcast, Collective::kAllToAll}) {
      compare(rank, places, {collective, {}, 3});
      compare(rank, places, {collective, {}, 300'000});
    }
    compare(rank, places, {Collective::kMessage, {}, 300'000});
  });
}

TEST_CASE("long data go from memory to memory between two and four ranks") {
  for (const int size : {2, 4}) {
    StreamJob job;
    job.size = size;
    run_stream_ranks(job, [](const StreamRank& rank) {
      const Places places(rank, 1'400'000 * sizeof(float));
      for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather,
                                          Collective::kBroadcast, Collective::kAllToAll}) {
        Case c{collective, {}, 1'400'000};
        c.is_in_place = can_be_in_place(collective);
        compare(rank, places, c);
      }
      compare(rank, places, {Collective::kMessage, {}, 1'400'000});
    });
  }
}

TEST_CASE("averages, scaled sums and other operations on streams give the host's results") {
  const ShortSegments segments;
  StreamJob job;
  job.size = 3;
  run_stream_ranks(job, [](const StreamRank& rank) {
    const Places places(rank, 1009 * sizeof(float));
    for (const ReduceOp op : {ReduceOp::kAverage, ReduceOp::kMax, ReduceOp::kProduct}) {
      for (const Collective collective :
           {Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce}) {
        compare(rank, places, {collective, {}, 1009, ElementType::kFloat32, op, false});
      }
    }
    std::vector<float> floats(1009);
    std::iota(floats.begin(), floats.end(), 0.0F);
    Bytes bytes(floats.size() * sizeof(float));
    std::memcpy(bytes.data(), floats.data(), bytes.size());
    std::byte* const memory = rank.upload(bytes);
    CallOptions options;
    options.scale = 1 + rank.communicator.rank();
    rank.communicator.all_reduce(floats, ReduceOp::kScaledSum, options);
    options.stream = DeviceStream{rank.stream};
    rank.communicator.all_reduce({memory, floats.size(), ElementType::kFloat32},
                                 ReduceOp::kScaledSum, options);
    rank.synchronize();
    expect(std::memcmp(memory, floats.data(), bytes.size()) == 0, "a scaled sum");
  });
}

TEST_CASE("shares of any length work on streams") {
  const ShortSegments segments;
  StreamJob job;
  job.size = 3;
  run_stream_ranks(job, [](const StreamRank& rank) {
    Communicator& by = rank.communicator;
    const std::vector<std::size_t> counts = {500, 0, 703};
    const std::size_t mine = counts[static_cast<std::size_t>(by.rank())];
    Bytes given_bytes(1203, static_cast<std::byte>(by.rank() + 1));
    std::byte* const in = rank.upload(given_bytes);
    std::byte* const out = rank.upload(Bytes(1203));
    CallOptions options;
    options.stream = DeviceStream{rank.stream};
    const auto expect_all = [&](bool is_here, const char* what) {
      rank.synchronize();
      for (std::size_t i = 0; is_here && i < 1203; ++i)
        expect(out[i] == static_cast<std::byte>(i < 500 ? 1 : 3), what);
      std::memset(out, 0, 1203);
    };
    by.all_gather_v({in, mine, ElementType::kUint8}, std::span(out, 1203), counts, options);
    expect_all(true, "all_gather_v");
    by.gather_v({in, mine, ElementType::kUint8}, std::span(out, 1203),
                by.rank() == 1 ? Counts(counts) : Counts(), 1, options);
    expect_all(by.rank() == 1, "gather_v");
    const std::vector<std::size_t> gives(3, mine);
    by.all_to_all_v(
        std::span(rank.upload(Bytes(3 * mine, static_cast<std::byte>(by.rank() + 1))), 3 * mine),
        gives, std::span(out, 1203), counts, options);
    expect_all(true, "all_to_all_v");
  });
}

}  // namespace kolo::test
