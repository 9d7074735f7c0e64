// Collectives over spans: what they say twice must agree, and the rest is as with pointers.
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/collectives/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 10;  // chunks of 4, 3 and 3

float value(int rank, std::size_t index) {
  return static_cast<float>(100 * rank + static_cast<int>(index));
}

std::vector<float> filled(int rank, std::size_t count) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = value(rank, i);
  return data;
}

std::string said_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

void expect_said(const std::function<void()>& call, const std::string& wanted) {
  const std::string said = said_by(call);
  expect(said.find(wanted) != std::string::npos, "expected '" + wanted + "', was told: " + said);
}

}  // namespace

TEST_CASE("spans carry a chunk and the whole, whichever is given") {
  const bool is_async = GENERATE(false, true);
  run_ranks(3, "inproc", [is_async](Communicator& world) {
    const std::size_t chunk = chunk_count(kCount, world.size(), world.rank());
    const std::vector<float> mine = filled(world.rank(), chunk);
    std::vector<float> all(kCount);
    std::vector<float> sums(chunk);
    if (is_async) {
      Work gather = world.all_gather_async(mine, std::span(all));
      gather.wait();
      world.reduce_scatter_async(all, std::span(sums), ReduceOp::kSum).wait();
    } else {
      world.all_gather(mine, std::span(all));
      world.reduce_scatter(all, std::span(sums));
    }
    std::size_t place = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
      for (std::size_t i = 0; i < chunk_count(kCount, world.size(), rank); ++i)
        expect(all[place++] == value(rank, i), "a gathered element");
    }
    for (std::size_t i = 0; i < chunk; ++i)
      expect(sums[i] == 3 * value(world.rank(), i), "a sum of three alike");
  });
}

TEST_CASE("spans of reduce, all_to_all and messages hold what the others give") {
  const bool is_async = GENERATE(false, true);
  run_ranks(3, "inproc", [is_async](Communicator& world) {
    const int rank = world.rank();
    std::vector<std::int32_t> data(kCount, rank + 1);
    world.reduce(std::span(data), 1);
    expect(data[0] == (rank == 1 ? 6 : rank + 1), "the root has the sum, the others theirs");

    const std::vector<float> out = filled(rank, 6);
    std::vector<float> in(6);
    if (is_async) {
      world.all_to_all_async(out, std::span(in)).wait();
    } else {
      world.all_to_all(out, std::span(in));
    }
    for (int from = 0; from < 3; ++from) {
      const auto first = static_cast<std::size_t>(2 * rank);
      expect(in[static_cast<std::size_t>(2 * from)] == value(from, first), "what a rank gave");
    }

    std::array<double, 2> passed{};
    const std::array<double, 2> own{1.5 * rank, 2.5};
    const int next = (rank + 1) % 3;
    const int before = (rank + 2) % 3;
    if (is_async) {
      Work got = world.receive_async(std::span(passed), before);
      world.send_async(std::span(own), next).wait();
      got.wait();
    } else {
      Work got = world.receive_async(std::span(passed), before);
      world.send(std::span(own), next);
      got.wait();
      world.send(std::span(own), next);
      world.receive(std::span(passed), before);
    }
    expect(passed[0] == 1.5 * before && passed[1] == 2.5, "what came round the ring");
  });
}

TEST_CASE("a span of another length than its part is named before anything is sent") {
  run_ranks(3, "inproc", [](Communicator& world) {
    std::vector<float> all(kCount);
    std::vector<float> chunk(5);
    const std::string who = world.rank() == 0
                                ? "of rank 0 of 3 has 4 of 10 elements, and the span of it has 5"
                                : "of 3 has 3 of 10 elements, and the span of it has 5";
    expect_said([&] { world.all_gather(chunk, std::span(all)); }, "all_gather: the chunk");
    expect_said([&] { world.all_gather(chunk, std::span(all)); }, who);
    expect_said([&] { world.all_gather_async(chunk, std::span(all)); }, who);
    expect_said([&] { world.reduce_scatter(all, std::span(chunk)); }, "reduce_scatter: the chunk");
    expect_said([&] { world.reduce_scatter_async(all, std::span(chunk)); }, who);
    expect_said([&] { world.all_to_all(chunk, std::span(all)); },
                "all_to_all: what is given has 5 elements, and the span for what is got 10");
    expect_said([&] { world.all_to_all_async(chunk, std::span(all)); }, "all_to_all: what");
    world.all_reduce(std::span(all));
  });
}

}  // namespace kolo::test
