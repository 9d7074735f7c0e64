// Buffers from Communicator::allocate: every algorithm gives the same result as with other memory.
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr ElementType kType = ElementType::kInt32;

// Several segments for each of four ranks, and chunks that begin anywhere in a cache line.
constexpr std::size_t kCount = 60'001;

std::int32_t value(int rank, std::size_t i, int round) {
  return static_cast<std::int32_t>(i * 7 +
                                   static_cast<std::size_t>(rank * 1000 + round * 13) % 9973);
}

class Memory {
 public:
  Memory(Communicator& communicator, std::size_t count)
      : bytes_(communicator.allocate(count * sizeof(std::int32_t))) {}
  std::int32_t* data() { return reinterpret_cast<std::int32_t*>(bytes_.get()); }
  void fill(int rank, int round, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) data()[i] = value(rank, i, round);
  }

 private:
  std::shared_ptr<std::byte[]> bytes_;
};

struct Case {
  Communicator& communicator;
  CallOptions call;
  int round = 0;
  bool is_in_place = true;

  int rank() const { return communicator.rank(); }
  int size() const { return communicator.size(); }
  std::size_t begin(int r) const { return chunk_begin(kCount, size(), r); }
  std::size_t count(int r) const { return chunk_count(kCount, size(), r); }
  std::int32_t sum(std::size_t i) const {
    std::int32_t total = 0;
    for (int r = 0; r < size(); ++r) total += value(r, i, round);
    return total;
  }
  std::string where() const {
    return std::string(call.algorithm) + " of " + std::to_string(size()) + " ranks, " +
           (is_in_place ? "in place" : "out of place") + ", round " + std::to_string(round);
  }
};

void all_reduce(Case& c, Memory& in, Memory& out) {
  in.fill(c.rank(), c.round, 0, kCount);
  std::int32_t* const result = c.is_in_place ? in.data() : out.data();
  c.communicator.all_reduce({in.data(), kCount, kType}, {result, kCount, kType}, ReduceOp::kSum,
                            c.call);
  for (std::size_t i = 0; i < kCount; ++i) expect(result[i] == c.sum(i), [&] { return c.where(); });
  if (c.is_in_place) return;
  for (std::size_t i = 0; i < kCount; ++i)
    expect(in.data()[i] == value(c.rank(), i, c.round), [&] { return "the input, " + c.where(); });
}

void reduce_scatter(Case& c, Memory& in, Memory& out) {
  in.fill(c.rank(), c.round, 0, kCount);
  const std::size_t begin = c.begin(c.rank());
  std::int32_t* const result = c.is_in_place ? in.data() + begin : out.data();
  c.communicator.reduce_scatter(
      {in.data(), kCount, kType},
      {result, chunk_count(kCount, c.communicator.size(), c.communicator.rank()), kType},
      ReduceOp::kSum, c.call);
  for (std::size_t i = 0; i < c.count(c.rank()); ++i)
    expect(result[i] == c.sum(begin + i), [&] { return c.where(); });
}

void all_gather(Case& c, Memory& in, Memory& out) {
  const std::size_t begin = c.begin(c.rank());
  in.fill(c.rank(), c.round, begin, c.count(c.rank()));
  std::int32_t* const result = c.is_in_place ? in.data() : out.data();
  c.communicator.all_gather(
      {in.data() + begin, chunk_count(kCount, c.communicator.size(), c.communicator.rank()), kType},
      {result, kCount, kType}, c.call);
  for (int r = 0; r < c.size(); ++r) {
    for (std::size_t i = c.begin(r); i < c.begin(r) + c.count(r); ++i)
      expect(result[i] == value(r, i, c.round), [&] { return c.where(); });
  }
}

void broadcast(Case& c, Memory& in, Memory&) {
  const int root = c.round % c.size();
  if (c.rank() == root) in.fill(root, c.round, 0, kCount);
  c.communicator.broadcast({in.data(), kCount, kType}, root, c.call);
  for (std::size_t i = 0; i < kCount; ++i)
    expect(in.data()[i] == value(root, i, c.round), [&] { return c.where(); });
}

void all_to_all(Case& c, Memory& in, Memory& out) {
  const std::size_t each = kCount / static_cast<std::size_t>(c.size());
  const std::size_t count = each * static_cast<std::size_t>(c.size());
  in.fill(c.rank(), c.round, 0, count);
  std::int32_t* const result = c.is_in_place ? in.data() : out.data();
  c.communicator.all_to_all({in.data(), count, kType}, {result, count, kType}, c.call);
  const std::size_t mine = each * static_cast<std::size_t>(c.rank());
  for (int r = 0; r < c.size(); ++r) {
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t at = each * static_cast<std::size_t>(r) + i;
      expect(result[at] == value(r, mine + i, c.round), [&] { return c.where(); });
    }
  }
}

using Body = void (*)(Case&, Memory&, Memory&);

void run_all(Collective collective, Body body) {
  for (const std::string& transport : transports_under_test()) {
    for (const int size : {1, 2, 3, 4}) {
      DYNAMIC_SECTION(transport << ", " << size << " ranks") {
        run_ranks(size, transport, [&](Communicator& communicator) {
          Memory in(communicator, kCount);
          Memory out(communicator, kCount);
          int round = 0;
          for (const std::string_view algorithm : algorithm_names(collective)) {
            for (const bool is_in_place : {true, false}) {
              Case c{communicator, {}, ++round, is_in_place};
              c.call.algorithm = algorithm;
              body(c, in, out);
            }
          }
        });
      }
    }
  }
}

}  // namespace

TEST_CASE("a failed allocation reports the rank, the bytes requested and the memory left") {
  for (const std::string& transport : transports_under_test()) {
    DYNAMIC_SECTION(transport) {
      run_ranks(2, transport, [](Communicator& communicator) {
        const auto outcome =
            outcome_of([&] { static_cast<void>(communicator.allocate(std::size_t{1} << 45)); });
        expect(outcome.code == ErrorCode::kSystem, outcome.text);
        expect(outcome.text.starts_with("rank " + std::to_string(communicator.rank()) +
                                        ": allocate: there is no memory for 35184372088832 bytes"),
               outcome.text);
        expect(outcome.text.find("left") != std::string::npos, outcome.text);
        communicator.barrier();  // the communicator still works
      });
    }
  }
}

TEST_CASE("all_reduce works in memory shared with peers") {
  run_all(Collective::kAllReduce, all_reduce);
}
TEST_CASE("reduce_scatter works in memory shared with peers") {
  run_all(Collective::kReduceScatter, reduce_scatter);
}
TEST_CASE("all_gather works in memory shared with peers") {
  run_all(Collective::kAllGather, all_gather);
}
TEST_CASE("broadcast works in memory shared with peers") {
  run_all(Collective::kBroadcast, broadcast);
}
TEST_CASE("all_to_all works in memory shared with peers") {
  run_all(Collective::kAllToAll, all_to_all);
}

TEST_CASE("push_pull with a server in every rank works in memory shared with peers") {
  for (const std::string& transport : transports_under_test()) {
    DYNAMIC_SECTION(transport) {
      run_ranks(3, transport, [](Communicator& communicator) {
        Memory memory(communicator, kCount);
        ServerPlan plan;
        plan.everywhere = true;
        for (int round = 0; round < 3; ++round) {
          memory.fill(communicator.rank(), round, 0, kCount);
          communicator.push_pull({memory.data(), kCount, kType}, {memory.data(), kCount, kType},
                                 ReduceOp::kSum, plan);
          for (std::size_t i = 0; i < kCount; ++i) {
            expect(memory.data()[i] == value(0, i, round) + value(1, i, round) + value(2, i, round),
                   "a sum");
          }
        }
      });
    }
  }
}

TEST_CASE("memory may be used in parts, freed between operations, and kept to the end") {
  for (const std::string& transport : transports_under_test()) {
    DYNAMIC_SECTION(transport) {
      run_ranks(2, transport, [](Communicator& communicator) {
        std::shared_ptr<std::byte[]> last;
        for (int round = 0; round < 20; ++round) {
          const auto memory = communicator.allocate(kCount * 4 + 4096);
          auto* const data =
              reinterpret_cast<std::int32_t*>(memory.get() + 4 * static_cast<std::size_t>(round));
          for (std::size_t i = 0; i < kCount; ++i) data[i] = value(communicator.rank(), i, round);
          communicator.all_reduce({data, kCount, kType}, ReduceOp::kMax);
          expect(data[kCount - 1] == value(1, kCount - 1, round), "the greater one");
          last = memory;
        }
        // of another transport, to which this is plain memory
        Communicator other = communicator.duplicate();
        auto* const data = reinterpret_cast<std::int32_t*>(last.get());
        data[0] = 1;
        other.all_reduce({data, kCount, kType}, ReduceOp::kSum);
        expect(data[0] == 2, "a sum");
      });
    }
  }
}

TEST_CASE("ranks that all send first do not block while the channel has room") {
  for (const std::string& transport : transports_under_test()) {
    DYNAMIC_SECTION(transport) {
      run_ranks(2, transport, [](Communicator& communicator) {
        constexpr std::size_t kShort = 4096;  // 16 KiB
        const int peer = 1 - communicator.rank();
        Memory allocated(communicator, kShort);
        std::vector<std::int32_t> plain(kShort);
        std::vector<std::int32_t> got(kShort);
        for (int round = 0; round < 120; ++round) {
          std::int32_t* const data = round % 2 == 0 ? allocated.data() : plain.data();
          for (std::size_t i = 0; i < kShort; ++i) data[i] = value(communicator.rank(), i, round);
          communicator.send({data, kShort, kType}, peer);
          communicator.receive({got.data(), kShort, kType}, peer);
          for (std::size_t i = 0; i < kShort; ++i)
            expect(got[i] == value(peer, i, round),
                   [&] { return "round " + std::to_string(round); });
        }
      });
    }
  }
}
