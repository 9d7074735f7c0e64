// Stream executor over a fake machine: every algorithm gives the same result as on the host, and no
// host waits for a stream.
#include "collectives/stream/stream_executor.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/executor/executor.h"
#include "collectives/schedule/buffer_reuse.h"
#include "test/collectives/support/fake_device_math.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/transports/cuda/fake_ranks.h"
#include "transports/error.h"
#include "transports/inproc/transport.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 5003;  // elements; a prime
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr std::size_t kSlot = 576;  // bytes, so that a chunk takes several segments
constexpr std::chrono::seconds kPatience{120};

enum class Where { kApart, kTogether };
using Buffer = std::vector<float>;

// Small integers, different on every rank: sums are exact.
Buffer numbers(int seed) {
  Buffer floats(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    floats[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(seed) * 31) % 101);
  return floats;
}

struct Buffers {
  explicit Buffers(int rank) : in(numbers(rank)), out(numbers(500 + rank)) {}
  bool operator==(const Buffers& other) const { return in == other.in && out == other.out; }

  Buffer in;
  Buffer out;
};

// Positions of a range's chunks. In place they are the positions in the whole buffer.
std::size_t begin_of(const Schedule& schedule, const ChunkRange& held) {
  const int parts = schedule.chunks / schedule.spans;
  return chunk_begin(kCount, parts, held.count == 0 ? 0 : held.first % parts) * sizeof(float);
}

struct Places {
  const std::byte* in;
  std::byte* out;
};
Places places(const Schedule& schedule, std::byte* in, std::byte* out, Where where) {
  if (where == Where::kApart) return {in, out};
  return {in + begin_of(schedule, schedule.input), in + begin_of(schedule, schedule.output)};
}

Schedule written(const Algorithm& algorithm, int rank, int size, bool can_answer = false) {
  PlanRequest request;
  request.ranks = {rank, size, 0, 1, can_answer, {}};
  request.servers.rank = rank;
  request.servers.size = size;
  request.servers.servers.resize(static_cast<std::size_t>(size));
  std::iota(request.servers.servers.begin(), request.servers.servers.end(), 0);
  request.servers.servers_work = true;
  return algorithm.write(request);
}

bool takes_part(const Algorithm& algorithm, int rank, int size) {
  return algorithm.collective != Collective::kMessage || (size > 1 && rank < 2);
}

struct Task {
  ReduceOp op = ReduceOp::kSum;
  Where where = Where::kApart;
  bool answers = false;  // on streams
};
double scale_of(const Task& task, int rank) {
  return task.op == ReduceOp::kScaledSum ? 1 + rank : 1;
}

// The result on all ranks by the host's executor, over threads.
std::vector<Buffers> on_hosts(const Algorithm& algorithm, int size, const Task& task) {
  std::vector<Buffers> results;
  for (int rank = 0; rank < size; ++rank) results.emplace_back(rank);
  const auto outcomes = run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
    const auto transport = make_inproc({rank, size, store, Clock::now() + kPatience}, {});
    if (!takes_part(algorithm, rank, size)) return;
    std::vector<Channel*> channels;
    for (int peer = 0; peer < size; ++peer)
      channels.push_back(peer == rank ? nullptr : &transport->channel(peer));
    Executor executor(written(algorithm, rank, size), channels);
    Buffers& mine = results[static_cast<std::size_t>(rank)];
    const auto at = places(executor.schedule(), reinterpret_cast<std::byte*>(mine.in.data()),
                           reinterpret_cast<std::byte*>(mine.out.data()), task.where);
    Binding binding;
    binding.in = at.in;
    binding.out = at.out;
    binding.header.collective = algorithm.collective;
    binding.header.op = task.op;
    binding.header.segment_units = kSlot / kSegmentAlignment;
    binding.header.count_and_plan = std::uint64_t{kCount} << 16;
    binding.scale = scale_of(task, rank);
    executor.start(binding);
    const Deadline deadline = Clock::now() + kPatience;
    while (!executor.advance()) {
      transport->progress();
      std::this_thread::yield();
      expect(Clock::now() < deadline, [&] { return "waits for " + executor.describe_wait(); });
    }
  });
  for (const RankOutcome& outcome : outcomes) REQUIRE(outcome.text.empty());
  return results;
}

enum class Hidden { kNone, kIn, kOut, kBoth };

// Ranks with a stream each. One thread drives all hosts in turn.
class Streams {
 public:
  explicit Streams(int size, FakeMachine::Runs runs = FakeMachine::Runs::kAtOnce)
      : machine_(1, runs),
        ranks_(make_fake_ranks(machine_, size, [](int, FakeDriver&, CudaIpcSettings& settings) {
          settings.segment_bytes = kSlot;
        })) {
    for (FakeRank& rank : ranks_) {
      streams_.push_back(rank.driver->make_stream());
      math_.push_back(std::make_unique<FakeDeviceMath>(machine_, rank.driver));
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  FakeMachine& machine() { return machine_; }
  FakeRank& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
  cuda::Stream stream(int number) { return streams_[static_cast<std::size_t>(number)]; }
  FakeDeviceMath& math(int number) { return *math_[static_cast<std::size_t>(number)]; }

  std::vector<StreamChannel*> channels(int number) {
    std::vector<StreamChannel*> channels;
    for (int peer = 0; peer < size(); ++peer)
      channels.push_back(peer == number ? nullptr : &rank(number).stream_to(peer));
    return channels;
  }

  // Device memory with a copy of these floats.
  std::byte* upload(int number, const Buffer& floats, Hidden as = Hidden::kNone) {
    const bool is_hidden = (number == hidden_rank_ || hidden_rank_ == 2) &&
                           (hidden_ == as || (hidden_ == Hidden::kBoth && as != Hidden::kNone));
    std::byte* const memory = rank(number).driver->make_memory(
        kBytes, is_hidden ? FakeDriver::Kind::kPool : FakeDriver::Kind::kDevice);
    std::memcpy(memory, floats.data(), kBytes);
    return memory;
  }

  // Lets the hosts enqueue in turn until everything is enqueued. False if they wait for each other
  // forever.
  static bool give(std::vector<std::unique_ptr<StreamExecutor>>& executors) {
    std::vector<bool> is_given(executors.size());
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (std::size_t i = 0; i < executors.size(); ++i) {
        if (is_given[i] || executors[i] == nullptr) continue;
        const auto moves = executors[i]->moves();
        is_given[i] = executors[i]->advance();
        has_moved |= is_given[i] || executors[i]->moves() != moves;
      }
    }
    for (std::size_t i = 0; i < executors.size(); ++i) {
      if (!is_given[i] && executors[i] != nullptr) return false;
    }
    return true;
  }

  FakeDriver::Moved moved() {
    FakeDriver::Moved all;
    for (FakeRank& rank : ranks_) {
      all.read += rank.driver->moved().read;
      all.written += rank.driver->moved().written;
    }
    return all;
  }

  // Memory of this rank (2: of all ranks) that no peer can map.
  void hide(int rank, Hidden which) {
    hidden_rank_ = rank;
    hidden_ = which;
  }

  void close() { close_together(ranks_); }

 private:
  FakeMachine machine_;
  std::vector<FakeRank> ranks_;
  std::vector<cuda::Stream> streams_;
  std::vector<std::unique_ptr<FakeDeviceMath>> math_;
  int hidden_rank_ = -1;
  Hidden hidden_ = Hidden::kNone;
};

// The same result, on streams.
std::vector<Buffers> on_streams(Streams& streams, const Algorithm& algorithm, const Task& task) {
  const int size = streams.size();
  std::vector<Buffers> results;
  std::vector<std::unique_ptr<StreamExecutor>> executors(static_cast<std::size_t>(size));
  std::vector<std::byte*> ins;
  std::vector<std::byte*> outs;
  for (int rank = 0; rank < size; ++rank) {
    results.emplace_back(rank);
    ins.push_back(streams.upload(rank, results.back().in, Hidden::kIn));
    outs.push_back(streams.upload(rank, results.back().out, Hidden::kOut));
    if (!takes_part(algorithm, rank, size)) continue;
    auto& executor = executors[static_cast<std::size_t>(rank)];
    executor = std::make_unique<StreamExecutor>(written(algorithm, rank, size, task.answers),
                                                streams.channels(rank), streams.math(rank));
    const auto at = places(executor->schedule(), ins.back(), outs.back(), task.where);
    StreamBinding binding;
    binding.stream = streams.stream(rank);
    binding.in = at.in;
    binding.out = at.out;
    binding.count = kCount;
    binding.op = task.op;
    binding.scale = scale_of(task, rank);
    executor->start(binding);
  }
  REQUIRE(Streams::give(executors));
  REQUIRE(streams.machine().run());
  for (std::size_t rank = 0; rank < ins.size(); ++rank) {
    std::memcpy(results[rank].in.data(), ins[rank], kBytes);
    std::memcpy(results[rank].out.data(), outs[rank], kBytes);
  }
  executors.clear();
  return results;
}

}  // namespace

TEST_CASE("every algorithm gives the host's results on streams, out of place and in place") {
  for (const int size : {1, 2, 3, 5}) {
    Streams streams(size);
    for (const Algorithm& algorithm : algorithms()) {
      for (const Where where : {Where::kApart, Where::kTogether}) {
        INFO(size << " ranks: " << to_string(algorithm.collective) << " by " << algorithm.name
                  << (where == Where::kApart ? ", apart" : ", in place"));
        const Task task{ReduceOp::kSum, where};
        REQUIRE(on_streams(streams, algorithm, task) == on_hosts(algorithm, size, task));
      }
    }
    streams.close();
    CHECK(streams.machine().violations().empty());
  }
}

TEST_CASE("averages and scaled sums on streams give the host's results") {
  for (const int size : {2, 3}) {
    Streams streams(size);
    for (const Algorithm& algorithm : algorithms()) {
      if (!is_reduction(algorithm.collective)) continue;
      const bool is_scan = algorithm.collective == Collective::kScan ||
                           algorithm.collective == Collective::kExclusiveScan;
      for (const ReduceOp op : {ReduceOp::kAverage, ReduceOp::kScaledSum, ReduceOp::kMax}) {
        if (is_scan && op == ReduceOp::kAverage) continue;
        for (const Where where : {Where::kApart, Where::kTogether}) {
          INFO(size << " ranks: " << to_string(op) << ", " << to_string(algorithm.collective)
                    << " by " << algorithm.name);
          const Task task{op, where};
          REQUIRE(on_streams(streams, algorithm, task) == on_hosts(algorithm, size, task));
        }
      }
    }
    streams.close();
    CHECK(streams.machine().violations().empty());
  }
}

TEST_CASE("an operation is enqueued whole before any of it runs") {
  Streams streams(3, FakeMachine::Runs::kWhenTold);
  for (const char* const name : {"ring", "two_shot", "recursive_doubling", "double_tree"}) {
    INFO(name);
    const Algorithm& algorithm = algorithms()[find_algorithm(Collective::kAllReduce, name)];
    const Task task;
    CHECK(on_streams(streams, algorithm, task) == on_hosts(algorithm, 3, task));
  }
  streams.close();
  CHECK(streams.machine().violations().empty());
}

TEST_CASE("leaves_from_memory holds on every rank if a schedule sets it") {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int size : {1, 2, 3, 4, 7, 8}) {
      bool is_said = false;
      bool is_so = true;
      for (int rank = 0; rank < size; ++rank) {
        if (!takes_part(algorithm, rank, size)) continue;
        const Schedule schedule = written(algorithm, rank, size);
        if (rank == 0) is_said = schedule.leaves_from_memory;
        INFO(to_string(algorithm.collective)
             << " by " << algorithm.name << ", rank " << rank << " of " << size);
        CHECK(schedule.leaves_from_memory == is_said);
        is_so = is_so && leaves_from_memory(schedule);
      }
      INFO(to_string(algorithm.collective) << " by " << algorithm.name << ", " << size);
      CHECK((!is_said || is_so));
    }
  }
}

TEST_CASE("long segments are forwarded from memory before anything runs") {
  Streams streams(4, FakeMachine::Runs::kWhenTold);
  for (const Algorithm& algorithm : algorithms()) {
    if (!written(algorithm, 0, 4).leaves_from_memory) continue;
    INFO(to_string(algorithm.collective) << " by " << algorithm.name);
    for (const Where where : {Where::kApart, Where::kTogether}) {
      const Task task{ReduceOp::kSum, where};
      CHECK(on_streams(streams, algorithm, task) == on_hosts(algorithm, 4, task));
    }
  }
  streams.close();
  CHECK(streams.machine().violations().empty());
}

TEST_CASE("long segments of two ranks go zero copy: each sum is written once, and read once") {
  Streams streams(2);
  const Algorithm& ring = algorithms()[find_algorithm(Collective::kAllReduce, "ring")];
  const Task task{ReduceOp::kSum, Where::kTogether};
  CHECK(on_streams(streams, ring, task) == on_hosts(ring, 2, task));
  // Each rank reduces its half of the sums, and copies the other half.
  CHECK(streams.moved().read == 3 * kBytes);
  CHECK(streams.moved().written == 2 * kBytes);
  streams.close();
}

TEST_CASE("two ranks that share a device sum once, and store each half of the sums twice") {
  for (const Where where : {Where::kApart, Where::kTogether}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin}) {
      Streams streams(2);
      const Algorithm& ring = algorithms()[find_algorithm(Collective::kAllReduce, "ring")];
      const Task task{op, where, true};
      INFO(to_string(op) << (where == Where::kApart ? ", apart" : ", in place"));
      CHECK(on_streams(streams, ring, task) == on_hosts(ring, 2, task));
      CHECK(streams.moved().read == 2 * kBytes);  // 4 n bytes by both ranks, not 5 n
      CHECK(streams.moved().written == 2 * kBytes);
      streams.close();
      CHECK(streams.machine().violations().empty());
    }
  }
}

TEST_CASE("an answered sum takes four words per rank, in two driver calls") {
  Streams streams(2);
  const Algorithm& ring = algorithms()[find_algorithm(Collective::kAllReduce, "ring")];
  const Task task{ReduceOp::kSum, Where::kApart, true};
  on_streams(streams, ring, task);
  const auto calls = [&](int rank) { return streams.rank(rank).driver->calls("word_operations"); };
  const int before[] = {calls(0), calls(1)};
  on_streams(streams, ring, task);
  CHECK(calls(0) - before[0] == 3);  // its host waits once for the other host
  CHECK(calls(1) - before[1] == 2);
  streams.close();
}

TEST_CASE("an answer is sent if its place cannot be mapped, and the result is the same") {
  const Algorithm& ring = algorithms()[find_algorithm(Collective::kAllReduce, "ring")];
  for (const int hidden : {0, 1, 2}) {  // 2: both ranks
    for (const auto which : {Hidden::kIn, Hidden::kOut, Hidden::kBoth}) {
      Streams streams(2);
      streams.hide(hidden, which);
      const Task task{ReduceOp::kSum, Where::kApart, true};
      INFO("rank " << hidden);
      CHECK(on_streams(streams, ring, task) == on_hosts(ring, 2, task));
      streams.close();
      CHECK(streams.machine().violations().empty());
    }
  }
}

TEST_CASE("a rank that needs the address of a long segment waits for the host that sends it") {
  Streams streams(2);
  const Algorithm& ring = algorithms()[find_algorithm(Collective::kAllReduce, "ring")];
  std::vector<std::unique_ptr<StreamExecutor>> executors;
  for (int rank = 0; rank < 2; ++rank) {
    executors.push_back(std::make_unique<StreamExecutor>(
        written(ring, rank, 2), streams.channels(rank), streams.math(rank)));
    StreamBinding binding;
    binding.stream = streams.stream(rank);
    binding.in = binding.out = streams.upload(rank, numbers(rank));
    binding.count = kCount;
    executors.back()->start(binding);
  }
  CHECK_FALSE(executors[0]->advance());
  CHECK(executors[0]->awaited_peer() == 1);
  CHECK(executors[0]->describe_wait() ==
        "rank 1 to enqueue its part of ring step 2 of 3 on its stream");
  CHECK(Streams::give(executors));
  CHECK(streams.machine().run());
  executors.clear();
  streams.close();
}

TEST_CASE("work enqueued after an operation may overwrite its memory") {
  Streams streams(2, FakeMachine::Runs::kWhenTold);
  const Algorithm& chain = algorithms()[find_algorithm(Collective::kBroadcast, "chain")];
  std::vector<std::unique_ptr<StreamExecutor>> executors;
  std::vector<std::byte*> memory;
  for (int rank = 0; rank < 2; ++rank) {
    executors.push_back(std::make_unique<StreamExecutor>(
        written(chain, rank, 2), streams.channels(rank), streams.math(rank)));
    memory.push_back(streams.upload(rank, numbers(rank)));
    StreamBinding binding;
    binding.stream = streams.stream(rank);
    binding.in = binding.out = memory.back();
    binding.count = kCount;
    executors.back()->start(binding);
  }
  CHECK(Streams::give(executors));
  std::byte* const other = streams.upload(0, numbers(7));
  streams.math(0).copy(memory[0], other, kBytes, streams.stream(0));
  CHECK(streams.machine().run());
  Buffer found(kCount);
  std::memcpy(found.data(), memory[1], kBytes);
  CHECK(found == numbers(0));
  executors.clear();
  streams.close();
}

TEST_CASE("schedules that streams do not support are refused by the constructor") {
  Streams streams(2);
  Schedule holds;
  holds.algorithm = "holds";
  holds.size = 2;
  holds.steps.resize(1);
  holds.steps[0].kind = StepKind::kReceive;
  holds.steps[0].is_held = true;
  holds.steps[0].from = 1;
  CHECK_THROWS_WITH(StreamExecutor(holds, streams.channels(0), streams.math(0)),
                    "holds: a device's stream cannot hold a segment and answer it later; use a "
                    "schedule without held segments");
  Schedule updates;
  updates.algorithm = "serves";
  updates.steps.resize(1);
  updates.steps[0].kind = StepKind::kUpdate;
  CHECK_THROWS_WITH(StreamExecutor(updates, streams.channels(0), streams.math(0)),
                    "serves: a server's update runs on the host, and not on a device's stream");
  streams.close();
}

TEST_CASE("a lost peer ends the enqueueing with its name") {
  Streams streams(2);
  const Algorithm& ring = algorithms()[find_algorithm(Collective::kAllReduce, "ring")];
  StreamExecutor executor(written(ring, 0, 2), streams.channels(0), streams.math(0));
  StreamBinding binding;
  binding.stream = streams.stream(0);
  binding.in = binding.out = streams.upload(0, numbers(0));
  binding.count = kCount;
  executor.start(binding);
  CHECK_FALSE(executor.advance());
  std::thread closing([&] { streams.rank(1).transport.reset(); });
  const Deadline deadline = Clock::now() + kPatience;
  std::string text;
  while (text.empty() && Clock::now() < deadline) {
    try {
      executor.advance();
    } catch (const Error& error) {
      text = error.what();
      CHECK(error.code() == ErrorCode::kPeerLost);
    }
  }
  CHECK(text.find("cannot receive from rank 1 on a stream (cuda_ipc)") != std::string::npos);
  streams.rank(0).transport.reset();
  closing.join();
}

}  // namespace kolo::test
