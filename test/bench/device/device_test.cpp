// Measuring on a device's memory. Plain memory stands in for the device, and libraries that know
// only one kind of memory run on it. Ranks are threads.
#include <array>
#include <barrier>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "bench/device/copy_limit.h"
#include "bench/device/kernel_operands.h"
#include "bench/device/library_on_device.h"
#include "bench/limits/run_limit.h"
#include "bench/measure/measure.h"
#include "bench/output/report.h"
#include "test/bench/device/fake_memory.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

constexpr int kRanks = 2;

// All ranks' inputs, and a barrier.
struct Table {
  std::vector<std::vector<float>> inputs{kRanks};
  std::barrier<> barrier{kRanks};
};

// Sums over all ranks, by a library that enqueues or by one that runs in host memory.
class Sums final : public Library {
 public:
  Sums(Table& table, int rank, bool enqueues, const FakeMemory& memory)
      : table_(table),
        rank_(static_cast<std::size_t>(rank)),
        enqueues_(enqueues),
        memory_(memory) {}

  std::string name() const override { return "sums"; }
  std::string transport() const override { return "table"; }
  std::string algorithm(const Problem&) const override { return "gather"; }
  std::string objection(const Problem&) const override { return {}; }
  bool enqueues() const override { return enqueues_; }

  void run(const Problem& problem, const void* in, void* out) override {
    if (memory_.holds(in) != enqueues_ || memory_.holds(out) != enqueues_)
      throw std::logic_error("a buffer of the other memory");
    const auto* mine = static_cast<const float*>(in);
    table_.inputs[rank_].assign(mine, mine + problem.count);
    table_.barrier.arrive_and_wait();
    auto* sums = static_cast<float*>(out);
    for (std::size_t i = 0; i < problem.count; ++i)
      sums[i] = table_.inputs[0][i] + table_.inputs[1][i];
    table_.barrier.arrive_and_wait();
  }

 private:
  Table& table_;
  std::size_t rank_;
  bool enqueues_;
  const FakeMemory& memory_;
};

struct Found {
  Row row;
  std::size_t copied_bytes = 0;  // of rank 0
  int pins = 0;
};

Found measure(bool enqueues, bool is_in_place) {
  Arguments arguments;
  arguments.command = "allreduce";
  arguments.problem.is_in_place = is_in_place;
  arguments.device = "cuda";
  arguments.max_bytes = 4096;
  arguments.iterations = 3;
  arguments.warmup = 1;
  arguments.passes = 1;
  Table table;
  const auto store = make_local_store();
  Found found;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      RankGroup group(rank, kRanks, *store, arguments.timeout);
      const auto memory = std::make_shared<FakeMemory>();
      {
        Bench bench(group, arguments);
        LibraryOnDevice library(std::make_unique<Sums>(table, rank, enqueues, *memory), memory,
                                rank, kRanks);
        const auto rows = bench.measure({&library}, 4096);
        if (rank == 0) found.row = rows.front();
      }
      if (rank == 0) found.copied_bytes = memory->copied_bytes;
      if (rank == 0) found.pins = memory->pins;
    });
  }
  for (auto& rank : ranks) rank.join();
  return found;
}

}  // namespace

TEST_CASE("a library that enqueues gets device memory, and its results are checked") {
  const bool is_in_place = GENERATE(true, false);
  const Found found = measure(true, is_in_place);
  CHECK(found.row.wrong == 0U);
  CHECK(found.row.device == "a played device");
  REQUIRE(found.row.enqueue_us);
  CHECK(*found.row.enqueue_us > 0);
  CHECK(found.row.time_us.median >= 0);
  const std::size_t buffers = is_in_place ? 1 : 2;
  CHECK(found.copied_bytes == buffers * 4 * 2 * 4096);  // there and back, in 4 iterations
  CHECK(found.pins == 0);
  const auto line = nlohmann::json::parse(json_line(found.row));
  CHECK(line["memory"] == "cuda");
  CHECK(line["enqueue_us"] == *found.row.enqueue_us);
}

TEST_CASE("a library for host memory gets that and pays for both copies") {
  const Found found = measure(false, true);
  CHECK(found.row.wrong == 0U);
  CHECK_FALSE(found.row.enqueue_us);
  // to the device, untimed; down to the host and back up
  CHECK(found.copied_bytes == 4 * 3 * 4096);
}

TEST_CASE("a rank copies only its part of the problem") {
  Problem problem;
  problem.count = 10;
  const auto moved = [&problem](Collective collective, int rank) {
    problem.collective = collective;
    const Moved found = moved_by(problem, rank, 3);
    return std::pair(found.in_bytes / 4, found.out_bytes / 4);
  };
  CHECK(moved(Collective::kAllReduce, 1) == std::pair<std::size_t, std::size_t>(10, 10));
  CHECK(moved(Collective::kReduceScatter, 0) == std::pair<std::size_t, std::size_t>(10, 4));
  CHECK(moved(Collective::kAllGather, 2) == std::pair<std::size_t, std::size_t>(3, 10));
  CHECK(moved(Collective::kBroadcast, 0) == std::pair<std::size_t, std::size_t>(10, 0));
  CHECK(moved(Collective::kBroadcast, 1) == std::pair<std::size_t, std::size_t>(0, 10));
  CHECK(moved(Collective::kReduce, 1) == std::pair<std::size_t, std::size_t>(10, 0));
  CHECK(moved(Collective::kScatter, 1) == std::pair<std::size_t, std::size_t>(0, 3));
  CHECK(moved(Collective::kGather, 1) == std::pair<std::size_t, std::size_t>(3, 0));
  CHECK(moved(Collective::kBarrier, 1) == std::pair<std::size_t, std::size_t>(0, 0));
}

TEST_CASE("workers and servers copy their own parts, and a rank that is both copies both") {
  using Elements = std::pair<std::size_t, std::size_t>;
  Problem problem;
  problem.count = 10;
  const auto moved = [&problem](Collective collective, int servers, int rank) {
    problem.collective = collective;
    problem.servers = servers;
    const Moved found = moved_by(problem, rank, 3);
    return Elements(found.in_bytes / 4, found.out_bytes / 4);
  };
  CHECK(moved(Collective::kPushPull, 0, 1) == Elements(10, 10));
  CHECK(moved(Collective::kPush, 0, 0) == Elements(10, 4));
  CHECK(moved(Collective::kPull, 0, 2) == Elements(3, 10));
  CHECK(moved(Collective::kPushPull, 2, 1) == Elements(0, 0));  // a server has no data of its own
  CHECK(moved(Collective::kPushPull, 2, 2) == Elements(10, 10));
  CHECK(moved(Collective::kPush, 2, 1) == Elements(0, 5));
  CHECK(moved(Collective::kPush, 2, 2) == Elements(10, 0));
  CHECK(moved(Collective::kPull, 2, 0) == Elements(5, 0));
  CHECK(moved(Collective::kPull, 2, 2) == Elements(0, 10));
}

namespace {

// A library for host memory that does nothing.
class Idle final : public Library {
 public:
  std::string name() const override { return "idle"; }
  std::string transport() const override { return "none"; }
  std::string algorithm(const Problem&) const override { return "none"; }
  std::string objection(const Problem&) const override { return {}; }
  void run(const Problem&, const void*, void*) override {}
};

}  // namespace

TEST_CASE("a library on the host copies a worker's input down and a server's output up") {
  Problem problem;
  problem.collective = Collective::kPush;
  problem.servers = 1;
  problem.count = 100;
  std::vector<std::byte> buffer(400);
  const auto copied = [&](int rank) {
    const auto memory = std::make_shared<FakeMemory>();
    LibraryOnDevice library(std::make_unique<Idle>(), memory, rank, 3);
    library.place(buffer, {});
    library.run(problem, rank == 0 ? nullptr : buffer.data(), rank == 0 ? buffer.data() : nullptr);
    return memory->copied_bytes;
  };
  CHECK(copied(0) == 400);
  CHECK(copied(1) == 400);
  problem.servers = 2;
  CHECK(copied(0) == 200);
  problem.collective = Collective::kPull;
  problem.servers = 1;
  problem.count = 10;
  CHECK(copied(1) == 0);  // it got no output memory
}

TEST_CASE("a mirror buffer stays until it is too small, and a placed buffer is pinned") {
  const auto memory = std::make_shared<FakeMemory>();
  std::vector<std::byte> one(100);
  std::vector<std::byte> two(100);
  MirroredBuffers twins(memory, MirroredBuffers::Hosts::kPinned);
  const auto place = [&twins](std::span<std::byte> first, std::span<std::byte> second) {
    const std::array both{first, second};
    twins.place(both);
  };
  place(one, two);
  CHECK(memory->pins == 2);
  std::byte* const twin = twins.of(one.data());
  CHECK(memory->holds(twin));
  CHECK(twins.of(two.data() + 7) == twins.of(two.data()) + 7);
  CHECK(twins.of(nullptr) == nullptr);
  place(std::span(two).first(50), {});
  CHECK(memory->pins == 1);
  CHECK(twins.of(two.data()) == twin);
  CHECK_THROWS_AS(twins.of(one.data()), std::invalid_argument);
  std::vector<std::byte> longer(200);
  place(longer, one);
  CHECK(twins.of(longer.data()) != twin);
  CHECK(memory->holds(twin));
}

TEST_CASE("the byte count of ranks on one device counts each input and output once") {
  Problem problem;
  problem.count = 10;
  const auto elements = [&problem](Collective collective, bool is_in_place) {
    problem.collective = collective;
    problem.is_in_place = is_in_place;
    return bytes_on_device(problem, 3) / 4;
  };
  CHECK(elements(Collective::kAllReduce, true) == 60);
  CHECK(elements(Collective::kAllReduce, false) == 60);
  CHECK(elements(Collective::kBroadcast, true) == 30);
  CHECK(elements(Collective::kReduce, true) == 40);
  CHECK(elements(Collective::kReduceScatter, true) == 40);
  CHECK(elements(Collective::kAllGather, false) == 40);
  CHECK(elements(Collective::kAllGather, true) == 30);  // a rank's own chunk is already in place
  CHECK(elements(Collective::kGather, false) == 20);
  // the root's own chunk, 4 elements, is in place
  CHECK(elements(Collective::kGather, true) == 12);
  CHECK(elements(Collective::kScatter, true) == 12);
  CHECK(elements(Collective::kAllToAll, false) == 60);
  CHECK(elements(Collective::kScan, false) == 60);
  CHECK(elements(Collective::kExclusiveScan, false) == 50);
  CHECK(elements(Collective::kBarrier, true) == 0);
  CHECK(elements(Collective::kPushPull, true) == 60);
  CHECK(elements(Collective::kPush, true) == 40);
  CHECK(elements(Collective::kPull, false) == 40);
  CHECK(elements(Collective::kPull, true) == 30);  // a server's own chunk is in place
  problem.servers = 1;
  CHECK(elements(Collective::kPushPull, true) == 40);
  CHECK(elements(Collective::kPush, true) == 30);
  CHECK(elements(Collective::kPull, true) == 30);
}

TEST_CASE("the copies of a limit move half of these bytes, between buffers of full length") {
  Problem problem;
  problem.count = 1000;
  problem.collective =
      GENERATE(Collective::kAllReduce, Collective::kBroadcast, Collective::kGather);
  const int ranks = GENERATE(2, 3, 5);
  FakeMemory memory;
  const auto found = copies_on_device_us(memory, problem, ranks, 0);
  REQUIRE(found);
  CHECK(*found > 0);
  const auto rounds = static_cast<std::size_t>(memory.waits);
  CHECK(rounds >= 4);  // the first is not counted
  CHECK(memory.copied_bytes == rounds * ((bytes_on_device(problem, ranks) + 1) / 2));
  memory.room = 100;
  CHECK_FALSE(copies_on_device_us(memory, problem, ranks, 0));
}

TEST_CASE("only ranks that share a device have a limit") {
  Arguments arguments;
  arguments.device = "cuda";
  arguments.ranks = 2;
  arguments.timeout = std::chrono::seconds(60);
  const auto store = make_local_store();
  const auto measure = [&](int rank, int devices) {
    const auto memory = std::make_shared<FakeMemory>();
    memory->devices = devices;
    return RunLimit(arguments, rank, "cuda_ipc", store, Pages::kOwn, memory).measure(4096);
  };
  CHECK_FALSE(measure(0, 2));
  std::jthread waiting([&] { CHECK_FALSE(measure(1, 1)); });
  CHECK(measure(0, 1).value_or(0) > 0);
}

TEST_CASE("operands of the kernel benchmark repeat, and every wrong element is counted") {
  for (const ElementType type : kElementTypes) {
    INFO(to_string(type));
    const std::size_t length = element_bytes(type);
    const auto one = operand_period(type, 1);
    const auto other = operand_period(type, 2);
    CHECK(one != other);
    std::vector<std::byte> sum(kOperandPeriod);
    reduce_kernel(type, ReduceOp::kSum)(sum.data(), nullptr, one.data(), other.data(),
                                        kOperandPeriod / length, 1);
    std::vector<std::byte> found = sum;
    found.insert(found.end(), sum.begin(), sum.begin() + 1000 * static_cast<long>(length));
    CHECK(count_wrong_elements(type, found, sum) == 0);
    found[0] ^= std::byte{1};
    found.back() ^= std::byte{1};
    CHECK(count_wrong_elements(type, found, sum) == 2);
  }
}
