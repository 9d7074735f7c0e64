// Messages between two ranks: all bytes are checked, and the reported values are right.
#include "bench/p2p/p2p.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/cli/arguments.h"
#include "bench/measure/rank_group.h"
#include "bench/p2p/pipe.h"
#include "test/support/catch.h"
#include "transports/registry.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

enum class Lie { kNone, kOneByte, kSameAgain };

// A mailbox through which two threads exchange messages.
struct Table {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::vector<std::byte>> to[2];
};

class TestPipe final : public Pipe {
 public:
  TestPipe(Table& table, int rank, Lie lie) : table_(table), rank_(rank), lie_(lie) {}

  std::string level() const override { return "table"; }
  std::string transport() const override { return "test"; }

  void exchange(const Messages& out, const Messages& in) override {
    for (std::size_t i = 0; i < out.count; ++i) give(out.first + i * out.bytes, out.bytes);
    for (std::size_t i = 0; i < in.count; ++i) {
      std::byte* const into = in.first + i * in.bytes;
      take(into, in.bytes);
      if (lie_ == Lie::kOneByte && rank_ == 1 && i == 0) into[in.bytes - 1] ^= std::byte{1};
      if (lie_ == Lie::kSameAgain && i > 0) std::memcpy(into, in.first, in.bytes);
    }
  }

 private:
  void give(const std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(table_.mutex);
    table_.to[1 - rank_].emplace_back(data, data + bytes);
    table_.changed.notify_all();
  }

  void take(std::byte* into, std::size_t bytes) {
    std::unique_lock lock(table_.mutex);
    auto& mine = table_.to[rank_];
    table_.changed.wait(lock, [&] { return !mine.empty(); });
    std::memcpy(into, mine.front().data(), bytes);
    mine.pop_front();
  }

  Table& table_;
  int rank_;
  Lie lie_;
};

// A pipe that sends the messages of one call at the next call only.
class LazyPipe final : public Pipe {
 public:
  LazyPipe(Table& table, int rank) : table_(table), rank_(rank) {}

  std::string level() const override { return "table"; }
  std::string transport() const override { return "test"; }
  bool needs_calls() const override { return true; }

  void get_on() override {
    const std::lock_guard lock(table_.mutex);
    auto& theirs = table_.to[1 - rank_];
    theirs.insert(theirs.end(), given_.begin(), given_.end());
    given_.clear();
    table_.changed.notify_all();
  }

  void exchange(const Messages& out, const Messages& in) override {
    get_on();
    for (std::size_t i = 0; i < in.count; ++i) take(in.first + i * in.bytes, in.bytes);
    for (std::size_t i = 0; i < out.count; ++i) {
      const std::byte* const message = out.first + i * out.bytes;
      given_.emplace_back(message, message + out.bytes);
    }
  }

 private:
  void take(std::byte* into, std::size_t bytes) {
    std::unique_lock lock(table_.mutex);
    auto& mine = table_.to[rank_];
    const auto has_come = [&] { return !mine.empty(); };
    if (!table_.changed.wait_for(lock, std::chrono::seconds(20), has_come))
      throw std::runtime_error("nothing comes: the other waits elsewhere");
    std::memcpy(into, mine.front().data(), bytes);
    mine.pop_front();
  }

  Table& table_;
  const int rank_;
  std::deque<std::vector<std::byte>> given_;
};

Arguments small_run(P2pKind kind) {
  Arguments arguments;
  arguments.command = "p2p";
  arguments.transport = "inproc";
  arguments.p2p.kind = kind;
  arguments.iterations = 6;
  arguments.warmup = 1;
  arguments.passes = 2;
  return arguments;
}

// The pipes of `rank`, made on its own thread.
using MakePipes = std::function<std::vector<std::unique_ptr<Pipe>>(int rank)>;

std::vector<P2pRow> play(const Arguments& arguments, std::size_t bytes, const MakePipes& make) {
  const auto store = make_local_store();
  std::vector<P2pRow> rows;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      RankGroup group(rank, 2, *store, arguments.timeout);
      const auto pipes = make(rank);
      std::vector<Pipe*> all;
      for (const auto& pipe : pipes) all.push_back(pipe.get());
      const auto found = measure_p2p(group, arguments, all, bytes);
      group.wait();
      if (rank == 0) rows = found;
    });
  }
  for (auto& rank : ranks) rank.join();
  return rows;
}

P2pRow play_with(Lie lie, P2pKind kind, std::size_t bytes) {
  Table table;
  return play(small_run(kind), bytes, [&](int rank) {
    std::vector<std::unique_ptr<Pipe>> pipes;
    pipes.push_back(std::make_unique<TestPipe>(table, rank, lie));
    return pipes;
  })[0];
}

}  // namespace

TEST_CASE("a correct pipe has no wrong bytes in any kind of measurement") {
  for (const P2pKind kind : kP2pKinds) {
    INFO(to_string(kind));
    const P2pRow row = play_with(Lie::kNone, kind, 1000);
    CHECK(row.wrong == 0U);
    CHECK(row.samples == 6);
    CHECK(row.pass_us.size() == 2);
    CHECK(row.time_us.p10 > 0);
    CHECK(row.time_us.p10 <= row.time_us.median);
    CHECK(row.time_us.median <= row.time_us.p90);
    CHECK(row.time_us.p90 <= row.time_us.p99);
  }
}

TEST_CASE("one wrong byte at one rank shows in every sample") {
  for (const P2pKind kind : kP2pKinds) {
    INFO(to_string(kind));
    const P2pRow row = play_with(Lie::kOneByte, kind, 1000);
    CHECK(row.wrong.value() >= row.samples);
  }
}

TEST_CASE("a duplicate message in place of another one is found") {
  for (const P2pKind kind : {P2pKind::kBandwidth, P2pKind::kBidirectional, P2pKind::kMessageRate}) {
    INFO(to_string(kind));
    CHECK(play_with(Lie::kSameAgain, kind, 1000).wrong.value() > 0);
  }
}

TEST_CASE("channels and messages work for every kind, with segments of their own") {
  for (const P2pKind kind : kP2pKinds) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{200'003}}) {
      INFO(to_string(kind) << ", " << bytes << " bytes");
      Arguments arguments = small_run(kind);
      arguments.p2p.level = kind == P2pKind::kBidirectional ? P2pLevel::kSegments : P2pLevel::kBoth;
      const auto store = make_local_store();
      const auto rows =
          play(arguments, bytes, [&](int rank) { return make_pipes(rank, arguments, store); });
      CHECK(rows.size() == (kind == P2pKind::kBidirectional ? 1 : 2));
      for (const P2pRow& row : rows) {
        CHECK(row.wrong == 0U);
        CHECK(row.transport == "inproc");
      }
    }
  }
}

TEST_CASE("bare libraries work for every kind and report their names") {
  const auto names = transport_names();
  for (const char* transport : {"ucx", "ofi"}) {
    INFO(transport);
    const bool is_built = std::find(names.begin(), names.end(), transport) != names.end();
    if (!is_built || !why_unusable(transport).empty()) {
      WARN("skipped: " << transport << " is not there");
      continue;
    }
    for (const P2pKind kind : kP2pKinds) {
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{200'003}}) {
        INFO(to_string(kind) << ", " << bytes << " bytes");
        Arguments arguments = small_run(kind);
        const auto store = make_local_store();
        const auto rows = play(arguments, bytes, [&](int rank) {
          PipeRequest request{rank, store, transport};
          std::vector<std::unique_ptr<Pipe>> pipes;
          pipes.push_back(make_library_pipe(request));
          return pipes;
        });
        REQUIRE(rows.size() == 1);
        CHECK(rows[0].wrong == 0U);
        CHECK(rows[0].level == "library");
      }
    }
  }
}

TEST_CASE("a rank that waits for its peer makes progress on its own pipe") {
  for (const P2pKind kind : {P2pKind::kLatency, P2pKind::kBandwidth, P2pKind::kMessageRate}) {
    INFO(to_string(kind));
    Table table;
    const auto rows = play(small_run(kind), 8, [&](int rank) {
      std::vector<std::unique_ptr<Pipe>> pipes;
      pipes.push_back(std::make_unique<LazyPipe>(table, rank));
      return pipes;
    });
    CHECK(rows[0].wrong == 0U);
  }
}

TEST_CASE("unchecked bytes are not reported as right") {
  Table table;
  Arguments arguments = small_run(P2pKind::kBandwidth);
  arguments.is_checked = false;
  const auto rows = play(arguments, 64, [&](int rank) {
    std::vector<std::unique_ptr<Pipe>> pipes;
    pipes.push_back(std::make_unique<TestPipe>(table, rank, Lie::kOneByte));
    return pipes;
  });
  CHECK_FALSE(rows[0].wrong.has_value());
  CHECK(nlohmann::json::parse(json_line(rows[0]))["wrong"].is_null());
}

TEST_CASE("a JSON line has the fields of a row, the kind, and its own bandwidths") {
  P2pRow row;
  row.kind = P2pKind::kBandwidth;
  row.level = "segments";
  row.transport = "test";
  row.bytes = 1000;
  row.window = 10;
  row.samples = 6;
  row.time_us = {5, 4, 6, 7};
  row.pass_us = {4, 6};
  row.segment_bytes = 64;
  const auto line = nlohmann::json::parse(json_line(row));
  CHECK(line["collective"] == "p2p_bandwidth");
  CHECK(line["algorithm"] == "segments");
  CHECK(line["type"] == "uint8");
  CHECK(line["form"] == "blocking");
  CHECK(line["segment_bytes"] == 64);
  CHECK(line["pass_us"] == std::vector<double>{4, 6});
  CHECK(line["window"] == 10);
  CHECK(line["algbw_GBps"].get<double>() == Approx(2));
  CHECK(line["busbw_GBps"].get<double>() == Approx(2));
  CHECK(line.contains("version"));
  CHECK(line["run"].contains("commit"));
}

TEST_CASE("bandwidth and rate follow from time, window and directions") {
  P2pRow row;
  row.bytes = 1000;
  row.window = 10;
  row.time_us.median = 5;
  row.kind = P2pKind::kLatency;  // its time is that of one message
  CHECK(messages_per_second(row) == Approx(2e5));
  CHECK(bandwidth(row) == Approx(0.2));
  row.kind = P2pKind::kBandwidth;
  CHECK(messages_per_second(row) == Approx(2e6));
  CHECK(bandwidth(row) == Approx(2));
  row.kind = P2pKind::kBidirectional;
  CHECK(bandwidth(row) == Approx(4));
}

TEST_CASE("a pass and a result are read back from text as they were written") {
  const P2pPassRequest turn{P2pKind::kBidirectional, 1000, 7, 3, 12, 0.25, false, 99};
  const P2pPassRequest same = parse_p2p_pass_request(to_text(turn));
  CHECK((same.kind == turn.kind && same.bytes == turn.bytes && same.window == turn.window));
  CHECK((same.warmup == turn.warmup && same.samples == turn.samples));
  CHECK((same.seconds == turn.seconds && same.is_checked == turn.is_checked));
  CHECK(same.salt == turn.salt);
  const P2pPassResult result = parse_p2p_pass_result(to_text(P2pPassResult{{1.5, 2.5}, 4, 100}));
  CHECK((result.times_us == std::vector<double>{1.5, 2.5} && result.wrong == 4));
  CHECK(result.salt == 100);
  CHECK_THROWS_AS(parse_p2p_pass_request("{}"), std::invalid_argument);
  CHECK_THROWS_AS(parse_p2p_pass_result("nonsense"), std::invalid_argument);
}

TEST_CASE("a window fits its memory, and is the requested one if possible") {
  P2pRequest request;
  request.kind = P2pKind::kBandwidth;
  CHECK(window_of(request, 8) == 64);
  CHECK(window_of(request, std::size_t{1} << 20) == 16);
  CHECK(window_of(request, std::size_t{1} << 30) == 4);
  request.kind = P2pKind::kLatency;
  CHECK(window_of(request, 8) == 16);
  CHECK(window_of(request, std::size_t{1} << 20) == 1);
  request.window = 5;
  CHECK(window_of(request, std::size_t{1} << 20) == 5);
}
