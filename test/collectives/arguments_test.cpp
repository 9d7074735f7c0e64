// A wrong argument of one rank is std::invalid_argument, thrown before anything is sent: the next
// operation works.
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collectives/version.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using Wrong = void (*)(Communicator&, float* data);

struct Mistake {
  Wrong call;
  const char* said;
};

using Lengths = std::vector<std::size_t>;

constexpr auto kFloat = ElementType::kFloat32;
constexpr auto kSum = ReduceOp::kSum;

const Mistake kMistakes[] = {
    {[](Communicator& c, float* data) {
       c.all_reduce({nullptr, 4, kFloat}, {data, 4, kFloat}, kSum);
     },
     "all_reduce: 'in' is null, but should hold 4 float32"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, kFloat}, {nullptr, 4, kFloat}, kSum);
     },
     "'out' is null"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, kFloat}, {data + 1, 4, kFloat}, kSum);
     },
     "overlap without being in place"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data + 3, 4, kFloat}, {data, 4, kFloat}, kSum);
     },
     "overlap without being in place"},
    {[](Communicator& c, float* data) {
       c.reduce_scatter({data, 4, kFloat}, {data + 3, chunk_count(4, c.size(), c.rank()), kFloat},
                        kSum);
     },
     "overlap without being in place"},
    {[](Communicator& c, float* data) {
       c.all_gather({data + 1, chunk_count(8, c.size(), c.rank()), kFloat}, {data, 8, kFloat});
     },
     "overlap without being in place"},
    {[](Communicator& c, float* data) {
       char* const inside = reinterpret_cast<char*>(data) + 3;
       c.all_reduce({inside, 2, kFloat}, kSum);
     },
     "all_reduce: 'in' is not aligned to float32: its address is 3 past a multiple of 4"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 1, kFloat}, kSum);  // a cached call, repeated below with another address
       c.all_reduce({data, 1, kFloat}, {reinterpret_cast<char*>(data) + 9, 1, kFloat}, kSum);
     },
     "'out' is not aligned to float32: its address is 1 past a multiple of 4"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, std::numeric_limits<std::size_t>::max() / 2, kFloat}, kSum);
     },
     "more than memory can hold"},
    {[](Communicator& c, float* data) {
       c.broadcast({data, 4, static_cast<ElementType>(99)}, 0);
     },
     "broadcast: 99 is not an element type"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, static_cast<ElementType>(99)}, kSum);
     },
     "all_reduce: 99 is not an element type"},
    {[](Communicator& c, float*) { c.algorithm(static_cast<Collective>(99), 8); },
     "99 is not a collective"},
    {[](Communicator& c, float* data) {
       c.barrier_async().when_done(nullptr);
       c.all_reduce({data, 4, kFloat}, kSum);
     },
     "when_done() with no function to call"},
    {[](Communicator& c, float* data) {
       c.broadcast({data, 4, kFloat}, 2);
     },
     "broadcast: root 2 is not a rank; expected 0 to 1"},
    {[](Communicator& c, float* data) {
       c.broadcast({data, 4, kFloat}, -1);
     },
     "root -1"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, kFloat}, kSum, {.algorithm = "rnig", .segment_bytes = 0});
     },
     "all_reduce: no algorithm 'rnig'; expected one of ring"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, kFloat}, ReduceOp::kBitXor);
     },
     "all_reduce: bit_xor is not defined for float32; it is for integers"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, kFloat}, static_cast<ReduceOp>(77));
     },
     "all_reduce: 77 is not a reduction operation"},
    {[](Communicator& c, float* data) {
       c.reduce_scatter({data, 4, ElementType::kFloat8E4M3},
                        {data, chunk_count(4, c.size(), c.rank()), ElementType::kFloat8E4M3},
                        ReduceOp::kBitAnd);
     },
     "reduce_scatter: bit_and is not defined for float8_e4m3"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, ElementType::kInt32}, ReduceOp::kScaledSum);
     },
     "all_reduce: scaled_sum is not defined for int32; it is for floats"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, kFloat}, ReduceOp::kScaledSum, {.scale = 1e39});
     },
     "all_reduce: a scale of 1e+39 is not finite in float32"},
    {[](Communicator& c, float* data) {
       c.all_reduce({data, 4, kFloat}, kSum, {.scale = 2});
     },
     "all_reduce: a scale of 2 is allowed for scaled_sum only"},
    {[](Communicator& c, float* data) {
       c.broadcast({data, 4, kFloat}, 0, {.scale = 0.5});
     },
     "broadcast: a scale of 0.5 is allowed for scaled_sum only"},
    {[](Communicator& c, float* data) {
       c.push_pull({data, 4, kFloat}, {data, 4, kFloat}, kSum, {});
     },
     "no server"},
    {[](Communicator& c, float* data) {
       c.push_pull({data, 4, kFloat}, {data, 4, kFloat}, kSum,
                   {.everywhere = false, .servers = {2}});
     },
     "server ranks must lie in 0 to 1"},
    {[](Communicator& c, float* data) {
       c.push_pull({data, 4, kFloat}, {data, 4, kFloat}, kSum,
                   {.everywhere = false, .servers = {-1}});
     },
     "server ranks must lie in 0 to 1"},
    {[](Communicator& c, float* data) {
       c.push_pull({data, 4, kFloat}, {data, 4, kFloat}, kSum,
                   {.everywhere = false, .servers = {1 - c.rank(), 1 - c.rank()}});
     },
     "named twice"},
    {[](Communicator& c, float*) {
       c.push_pull({nullptr, 4, kFloat}, {nullptr, 4, kFloat}, kSum,
                   {.everywhere = false, .servers = {0, 1}});
     },
     "no worker is left"},
    {[](Communicator& c, float* data) {
       c.push_pull({data, 4, kFloat}, {data, 4, kFloat}, kSum,
                   {.everywhere = false, .servers = {c.rank()}});
     },
     "a dedicated server gives and gets no data"},
    {[](Communicator& c, float* data) {
       c.push_pull({data, 4, kFloat}, {data, 4, kFloat}, kSum,
                   {.everywhere = true, .servers = {}, .parts = {1}});
     },
     "1 entries in parts for 2 servers"},
    {[](Communicator& c, float* data) {
       c.reduce({data, 4, kFloat}, {data + 4, 4, kFloat}, 2, kSum);
     },
     "reduce: root 2 is not a rank; expected 0 to 1"},
    {[](Communicator& c, float* data) {
       c.gather({data, chunk_count(4, c.size(), c.rank()), kFloat}, {nullptr, 4, kFloat}, c.rank());
     },
     "gather: 'out' is null"},
    {[](Communicator& c, float* data) {
       c.scatter({nullptr, 4, kFloat}, {data, chunk_count(4, c.size(), c.rank()), kFloat},
                 c.rank());
     },
     "scatter: 'in' is null"},
    {[](Communicator& c, float* data) {
       c.all_to_all({data, 5, kFloat}, {data + 8, 5, kFloat});
     },
     "all_to_all: 5 elements cannot be split equally among 2 ranks; use all_to_all_v"},
    {[](Communicator& c, float* data) {
       c.all_to_all_v({data, 3, kFloat}, Lengths{1, 2}, {data, 3, kFloat}, Lengths{1, 2});
     },
     "all_to_all_v cannot"},
    {[](Communicator& c, float* data) {
       c.scan({data, 4, kFloat}, ReduceOp::kAverage);
     },
     "scan: an average is not defined here"},
    {[](Communicator& c, float* data) {
       c.all_gather_v({data, 1, kFloat}, {data + 8, 1, kFloat}, Lengths{1});
     },
     "all_gather: 'counts' has 1 entries for 2 ranks; give one for each"},
    {[](Communicator& c, float* data) {
       c.gather_v({data, 3, kFloat}, {data + 8, 4, kFloat}, Lengths{2, 2}, c.rank());
     },
     "its entry in 'counts' is 2 elements, but the buffer of its share has 3"},
    {[](Communicator& c, float* data) {
       c.all_to_all_v({data, 3, kFloat}, Lengths{1, 2}, {data + 8, 3, kFloat}, Lengths{2, 1});
     },
     "this rank gives itself"},
    {[](Communicator& c, float* data) {
       c.gather_v({data, 2, kFloat}, {data + 8, 4, kFloat}, Lengths{2, 2}, c.rank(),
                  {"binomial_tree", 0});
     },
     "algorithm 'binomial_tree' needs the counts of all ranks; 'direct' does not"},
    {[](Communicator& c, float* data) {
       c.send({data, 3, kFloat}, c.rank());
     },
     "message: rank "},
    {[](Communicator& c, float* data) {
       c.receive({data, 3, kFloat}, 2);
     },
     "message: there is no rank 2; expected 0 to 1 (this is rank"},
};

}  // namespace

TEST_CASE("an error names a wrong argument before anything is sent") {
  for (const Mistake& mistake : kMistakes) {
    run_ranks(2, "inproc", [&](Communicator& communicator) {
      std::array<float, 16> data{};
      std::string said = "nothing";
      try {
        mistake.call(communicator, data.data());
      } catch (const std::invalid_argument& error) {
        said = error.what();
      }
      expect(said.find(mistake.said) != std::string::npos,
             "expected '" + std::string(mistake.said) + "', was told: " + said);
      communicator.all_reduce(std::span<float>(data));
    });
  }
}

TEST_CASE("a moved-from communicator reports so and may be assigned to") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::array<float, 4> data{};
    Communicator other = std::move(communicator);
    const auto said_by = [&](auto&& call) -> std::string {
      try {
        call();
      } catch (const std::invalid_argument& error) {
        return error.what();
      }
      return "nothing";
    };
    // NOLINTBEGIN(bugprone-use-after-move): the use after move is what is tested
    for (const std::string& said :
         {said_by([&] { communicator.all_reduce(std::span<float>(data)); }),
          said_by([&] { communicator.barrier_async(); }), said_by([&] { communicator.rank(); }),
          said_by([&] { communicator.split(0); }), said_by([&] { communicator.progress(); })}) {
      expect(said.find("was moved from") != std::string::npos, "was told: " + said);
    }
    // NOLINTEND(bugprone-use-after-move)
    communicator = std::move(other);
    communicator.all_reduce(std::span<float>(data));
  });
}

TEST_CASE("an error for an unknown transport lists the known ones") {
  const auto outcomes = run_threads(1, [](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = "carrier_pigeon";
    const Communicator communicator(rank, 1, store, options);
  });
  REQUIRE(outcomes[0].is_bug);
  REQUIRE(outcomes[0].text.find("'carrier_pigeon'") != std::string::npos);
  REQUIRE(outcomes[0].text.find("inproc") != std::string::npos);
}

TEST_CASE("a rank outside the communicator is refused") {
  REQUIRE_THROWS_AS(Communicator(3, 3, make_local_store()), std::invalid_argument);
  REQUIRE_THROWS_AS(Communicator(-1, 3, make_local_store()), std::invalid_argument);
  REQUIRE_THROWS_AS(Communicator(0, 0, make_local_store()), std::invalid_argument);
  REQUIRE_THROWS_AS(Communicator(0, 1, nullptr), std::invalid_argument);
}

TEST_CASE("version() returns the version of the library") {
  CHECK(std::string(version()) == KOLO_VERSION);
}

TEST_CASE("algorithm_names() lists the algorithms of a collective") {
  REQUIRE(algorithm_names(Collective::kAllReduce).front() == "ring");
  REQUIRE(algorithm_names(Collective::kBroadcast).front() == "binomial_tree");
  REQUIRE_FALSE(algorithm_names(Collective::kPushPull).empty());
}

}  // namespace kolo::test
