// Messages and calls on a device's memory. Plain memory stands in for the device for pipes that
// know only one kind of memory. A fake machine stands in for kolo's own messages, a parameter
// server's calls on streams, and replays of a graph. Ranks are threads.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench/cli/arguments.h"
#include "bench/device/captured_graph.h"
#include "bench/device/library_on_device.h"
#include "bench/device/pipe_on_device.h"
#include "bench/measure/measure.h"
#include "bench/measure/rank_group.h"
#include "bench/output/report.h"
#include "bench/p2p/p2p.h"
#include "test/bench/device/fake_memory.h"
#include "test/bench/device/machine_memory.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

// A mailbox through which two threads exchange messages.
class Table {
 public:
  void give(int to, const std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    lying_[to].emplace_back(data, data + bytes);
    changed_.notify_all();
  }

  void take(int by, std::byte* into) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !lying_[by].empty(); });
    std::memcpy(into, lying_[by].front().data(), lying_[by].front().size());
    lying_[by].pop_front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> lying_[2];
};

enum class Knows { kDevice, kHost };

// A pipe through the mailbox: on the device, run at the sample's end; or on the host, run at once.
class TablePipe final : public Pipe {
 public:
  TablePipe(Table& table, int rank, Knows knows, const FakeMemory& memory, bool lies = false)
      : table_(table), rank_(rank), knows_(knows), memory_(memory), lies_(lies) {}

  std::string library() const override { return "table"; }
  std::string level() const override { return "messages"; }
  std::string transport() const override { return "test"; }
  bool enqueues() const override { return knows_ == Knows::kDevice; }

  void exchange(const Messages& out, const Messages& in) override {
    for (const Messages& messages : {out, in}) {
      if (messages.count > 0 && memory_.holds(messages.first) != enqueues())
        throw std::logic_error("messages in the other memory");
    }
    given_.push_back({out, in});
    if (!enqueues()) do_all();
  }

  void finish() override { do_all(); }

 private:
  void do_all() {
    for (const auto& [out, in] : std::exchange(given_, {})) {
      for (std::size_t i = 0; i < out.count; ++i)
        table_.give(1 - rank_, out.first + i * out.bytes, out.bytes);
      for (std::size_t i = 0; i < in.count; ++i) {
        table_.take(rank_, in.first + i * in.bytes);
        if (lies_) in.first[i * in.bytes] ^= std::byte{1};
      }
    }
  }

  Table& table_;
  int rank_;
  Knows knows_;
  const FakeMemory& memory_;
  bool lies_;
  std::vector<std::pair<Messages, Messages>> given_;
};

// A pipe that runs in worker processes.
class PipeElsewhere final : public Pipe {
 public:
  std::string library() const override { return "elsewhere"; }
  std::string level() const override { return "messages"; }
  std::string transport() const override { return "test"; }
  bool runs_in_workers() const override { return true; }
  void exchange(const Messages&, const Messages&) override {}
};

Arguments small_run(P2pKind kind) {
  Arguments arguments;
  arguments.command = "p2p";
  arguments.device = "cuda";
  arguments.p2p.kind = kind;
  arguments.p2p.level = P2pLevel::kMessages;
  arguments.iterations = 4;
  arguments.warmup = 1;
  arguments.passes = 2;
  return arguments;
}

// Runs all ranks, each with a group of its own. Throws the exception of one that failed.
void run_ranks(int ranks, const Arguments& arguments,
               const std::function<void(int rank, RankGroup& group)>& body) {
  const auto store = make_local_store();
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        RankGroup group(rank, ranks, *store, arguments.timeout);
        body(rank, group);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

struct Found {
  P2pRow row;
  int pins = 0;        // of rank 0, while it was measured
  int pins_after = 0;  // at the end
};

Found play(Knows knows, P2pKind kind, bool lies = false) {
  const Arguments arguments = small_run(kind);
  Table table;
  Found found;
  run_ranks(2, arguments, [&](int rank, RankGroup& group) {
    const auto memory = std::make_shared<FakeMemory>();
    {
      PipeOnDevice pipe(std::make_unique<TablePipe>(table, rank, knows, *memory, lies && rank == 1),
                        memory);
      const auto rows = measure_p2p(group, arguments, {&pipe}, 1000);
      if (rank == 0) found.row = rows.front();
      if (rank == 0) found.pins = memory->pins;
    }
    if (rank == 0) found.pins_after = memory->pins;
  });
  return found;
}

// kolo's calls on streams, and the same calls as replays.
struct Beside {
  std::vector<Row> rows;
  std::string objection;
};

Beside play_captured(const Arguments& arguments, std::size_t bytes, test::FakeMachine& machine) {
  const auto store = make_local_store();
  Beside found;
  // outlive the ranks, because peers may have mapped them
  std::vector<std::shared_ptr<MachineMemory>> memories;
  for (int rank = 0; rank < arguments.ranks; ++rank)
    memories.push_back(std::make_shared<MachineMemory>(machine));
  run_ranks(arguments.ranks, arguments, [&](int rank, RankGroup& group) {
    LibraryRequest request;
    request.rank = rank;
    request.size = arguments.ranks;
    request.store = store;
    request.transport = arguments.transport;
    request.device = memories[static_cast<std::size_t>(rank)];
    LibraryOnDevice live(make_kolo(request), request.device, rank, arguments.ranks);
    LibraryOnDevice captured(make_captured(request), request.device, rank, arguments.ranks);
    Bench bench(group, arguments);
    const std::string objection = captured.objection(arguments.problem);
    std::vector<Library*> libraries{&live};
    if (objection.empty()) libraries.push_back(&captured);
    const auto rows = bench.measure(libraries, bytes);
    group.wait();
    if (rank == 0) found = {rows, objection};
  });
  return found;
}

// kolo's messages, as calls of the communicator on the streams of a fake machine.
std::vector<P2pRow> play_messages(const Arguments& arguments, std::size_t bytes,
                                  test::FakeMachine& machine) {
  const auto store = make_local_store();
  std::vector<P2pRow> rows;
  // outlive the ranks, because peers may have mapped them
  std::vector<std::shared_ptr<MachineMemory>> memories;
  for (int rank = 0; rank < 2; ++rank) memories.push_back(std::make_shared<MachineMemory>(machine));
  run_ranks(2, arguments, [&](int rank, RankGroup& group) {
    const auto pipes = make_pipes(rank, arguments, store, memories[static_cast<std::size_t>(rank)]);
    std::vector<Pipe*> all;
    for (const auto& pipe : pipes) all.push_back(pipe.get());
    const auto found = measure_p2p(group, arguments, all, bytes);
    group.wait();
    if (rank == 0) rows = found;
  });
  return rows;
}

}  // namespace

TEST_CASE("a pipe that enqueues is timed to its stream's end, and its data are checked") {
  for (const P2pKind kind : kP2pKinds) {
    INFO(to_string(kind));
    const Found found = play(Knows::kDevice, kind);
    CHECK(found.row.wrong == 0U);
    CHECK(found.row.samples == 4);
    CHECK(found.row.time_us.median > 0);
    CHECK(found.row.device == "a played device");
    REQUIRE(found.row.enqueue_us);
    CHECK(found.pins == 0);
    const auto line = nlohmann::json::parse(json_line(found.row));
    CHECK(line["memory"] == "cuda");
    CHECK(line["device"] == "a played device");
    CHECK(line["enqueue_us"] == *found.row.enqueue_us);
    CHECK(play(Knows::kDevice, kind, true).row.wrong.value() >= 4);
  }
}

TEST_CASE("a pipe for host memory copies down and up through pinned pages") {
  for (const P2pKind kind : kP2pKinds) {
    INFO(to_string(kind));
    const Found found = play(Knows::kHost, kind);
    CHECK(found.row.wrong == 0U);
    CHECK_FALSE(found.row.enqueue_us);
    CHECK(found.pins == 3);  // sent data, received data, and the final acknowledgement
    CHECK(found.pins_after == 0);
    CHECK(play(Knows::kHost, kind, true).row.wrong.value() >= 4);
  }
}

TEST_CASE(
    "a library in other processes is left out of a device's table, and the heading names it") {
  Arguments arguments = small_run(P2pKind::kBandwidth);
  arguments.against = {"openmpi"};
  arguments.sizes = {8, 64};
  Table lain;
  std::ostringstream table;
  run_ranks(2, arguments, [&](int rank, RankGroup& group) {
    const auto memory = std::make_shared<FakeMemory>();
    std::vector<std::unique_ptr<Pipe>> pipes;
    pipes.push_back(std::make_unique<PipeOnDevice>(
        std::make_unique<TablePipe>(lain, rank, Knows::kDevice, *memory), memory));
    pipes.push_back(std::make_unique<PipeOnDevice>(std::make_unique<PipeElsewhere>(), memory));
    JsonLines json("");
    std::ostringstream nowhere;
    if (run_p2p(group, arguments, pipes, rank == 0 ? table : nowhere, json) != 0)
      throw std::logic_error("wrong bytes");
  });
  const std::string text = table.str();
  CHECK_THAT(text, ContainsSubstring("# openmpi left out: its processes cannot use device memory"));
  CHECK_THAT(text, ContainsSubstring("# messages are in memory of a played device; "));
  CHECK_THAT(text, ContainsSubstring("# table of 64 bytes: rank 0's host enqueued a sample"));
  CHECK_THAT(text, !ContainsSubstring("in turn with"));
}

TEST_CASE("kolo's messages on streams are right for every kind, zero copy and staged") {
  for (const char* transport : {"cuda_ipc", "inproc"}) {
    for (const P2pKind kind : kP2pKinds) {
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{2'000'003}}) {
        INFO(transport << ", " << to_string(kind) << ", " << bytes << " bytes");
        Arguments arguments = small_run(kind);
        arguments.transport = transport;
        test::FakeMachine machine;
        const auto rows = play_messages(arguments, bytes, machine);
        REQUIRE(rows.size() == 1);
        CHECK(rows[0].library == "kolo");
        CHECK(rows[0].level == "messages");
        CHECK(rows[0].transport == transport);
        CHECK(rows[0].wrong == 0U);
        CHECK(rows[0].enqueue_us.value_or(0) > 0);
        CHECK(machine.violations().empty());
      }
    }
  }
}

TEST_CASE("a parameter server's calls on streams are right, with and without dedicated servers") {
  constexpr int kRanks = 3;
  const std::pair<const char*, Collective> calls[] = {{"push", Collective::kPush},
                                                      {"pull", Collective::kPull},
                                                      {"push_pull", Collective::kPushPull}};
  for (const auto& [command, collective] : calls) {
    for (const int servers : {0, 1, 2}) {
      for (const bool is_in_place : {true, false}) {
        INFO(command << ", " << servers << " servers, " << (is_in_place ? "in place" : "apart"));
        Arguments arguments = small_run(P2pKind::kLatency);
        arguments.command = command;
        arguments.ranks = kRanks;
        arguments.problem.collective = collective;
        arguments.problem.servers = servers;
        arguments.problem.is_in_place = is_in_place;
        arguments.max_bytes = 40'000;
        test::FakeMachine machine;
        std::vector<std::shared_ptr<MachineMemory>> memories;
        for (int rank = 0; rank < kRanks; ++rank)
          memories.push_back(std::make_shared<MachineMemory>(machine));
        const auto store = make_local_store();
        Row row;
        run_ranks(kRanks, arguments, [&](int rank, RankGroup& group) {
          LibraryRequest request;
          request.rank = rank;
          request.size = kRanks;
          request.store = store;
          request.transport = "cuda_ipc";
          request.device = memories[static_cast<std::size_t>(rank)];
          LibraryOnDevice library(make_kolo(request), request.device, rank, kRanks);
          Bench bench(group, arguments);
          const auto rows = bench.measure({&library}, 40'000);
          group.wait();
          if (rank == 0) row = rows.front();
        });
        CHECK(row.wrong == 0U);
        CHECK(row.enqueue_us.value_or(0) > 0);
        CHECK(row.device == "a played device");
        CHECK(machine.violations().empty());
      }
    }
  }
}

TEST_CASE("replays of a graph are measured beside the calls, of any size, and are right") {
  for (const auto& [command, collective] :
       {std::pair("allreduce", Collective::kAllReduce),
        std::pair("alltoall", Collective::kAllToAll), std::pair("push_pull", Collective::kPushPull),
        std::pair("barrier", Collective::kBarrier)}) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{65'536}, std::size_t{1'200'000}}) {
      INFO(command << ", " << bytes << " bytes");
      Arguments arguments = small_run(P2pKind::kLatency);
      arguments.command = command;
      arguments.transport = "cuda_ipc";
      arguments.problem.collective = collective;
      arguments.problem.is_in_place = collective != Collective::kAllToAll;
      arguments.max_bytes = bytes;
      test::FakeMachine machine;
      const Beside found = play_captured(arguments, bytes, machine);
      CHECK(found.objection == "");
      REQUIRE(found.rows.size() == 2);
      for (const Row& row : found.rows) {
        CHECK(row.library == "kolo");
        CHECK(row.transport == "cuda_ipc");
        CHECK(row.wrong == 0U);
        CHECK(row.iterations == 4);
        CHECK(row.enqueue_us.value_or(0) > 0);
        CHECK(row.device == "a played device");
      }
      CHECK(machine.violations().empty());
    }
  }
}

TEST_CASE("replays are left out with a reason if hosts carry the segments") {
  Arguments arguments = small_run(P2pKind::kLatency);
  arguments.command = "allreduce";
  arguments.transport = "inproc";
  arguments.max_bytes = 64;
  test::FakeMachine machine;
  const Beside found = play_captured(arguments, 64, machine);
  CHECK_THAT(found.objection, ContainsSubstring("cannot: hosts carry its segments"));
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows.front().wrong == 0U);
  CHECK(machine.violations().empty());
}

TEST_CASE("a replay's line is below its call's, and no other library is the best for it") {
  Arguments arguments = small_run(P2pKind::kLatency);
  arguments.command = "allreduce";
  arguments.against = {"gloo"};
  std::ostringstream table;
  JsonLines json("");
  Report report(arguments, table, json);
  Row row;
  row.library = "kolo";
  row.time_us.median = 20;
  row.bytes = 8;
  row.device = "a played device";
  row.enqueue_us = 5;
  Row replay = row;
  replay.peer = kCaptured;
  replay.form = CallForm::kCaptured;
  replay.time_us.median = 10;
  Row gloo = row;
  gloo.library = gloo.peer = "gloo";
  report.add({row, replay, gloo});
  CHECK_THAT(table.str(), ContainsSubstring(" captured "));
  CHECK_THAT(table.str(), ContainsSubstring("0.50x"));
  CHECK_THAT(table.str(), !ContainsSubstring("best peer"));
  CHECK_THAT(enqueue_lines({replay}).front(), ContainsSubstring("captured of 8 bytes"));
  const auto line = nlohmann::json::parse(json_line(replay));
  CHECK(line["library"] == "kolo");
  CHECK(line["peer"] == "captured");
  CHECK(line["form"] == "captured");
}
