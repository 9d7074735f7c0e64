// Floors of the limits: for which calls they are known, and that their data arrive. Their times are
// not tested.
#include "bench/limits/limits.h"

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>

#include "bench/limits/run_limit.h"
#include "bench/measure/cores.h"
#include "test/support/catch.h"
#include "transports/error.h"

namespace kolo::bench {
namespace {

constexpr double kSeconds = 0.001;
constexpr Collective kCollectives[] = {
    Collective::kAllReduce,     Collective::kReduceScatter, Collective::kAllGather,
    Collective::kAllToAll,      Collective::kBroadcast,     Collective::kReduce,
    Collective::kGather,        Collective::kScatter,       Collective::kScan,
    Collective::kExclusiveScan, Collective::kBarrier};

void expect_right(const FloorRequest& request, const Row& row, const char* transport) {
  INFO(transport << ": " << to_string(request.collective) << " of " << request.bytes
                 << " bytes between " << request.ranks << " by " << row.algorithm);
  REQUIRE(row.wrong.value_or(0) == 0);
  REQUIRE(row.time_us.median > 0);
  REQUIRE(row.iterations >= 3);
  REQUIRE(row.transport == transport);
  REQUIRE(row.ranks == request.ranks);
  REQUIRE(row.bytes == request.bytes);
  REQUIRE(row.distance.probes_us().size() == (available_cores().size() > 1 ? 2 : 0));
}

}  // namespace

TEST_CASE("the fastest round of a trial decides how many rounds fit") {
  std::atomic<int> calls{0};
  const Round round{{}, [&calls](int) {
                      if (++calls != 4) return;  // the last round of the trial is interrupted
                      const auto until =
                          std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
                      while (std::chrono::steady_clock::now() < until) {
                      }
                    }};
  REQUIRE(time_for(1, 0.05, round).size() == 1000);
}

TEST_CASE("the measurement ends soon even if rounds become slower than in the trial") {
  std::atomic<int> calls{0};
  const Round round{{}, [&calls](int) {
                      if (++calls <= 5) return;
                      const auto until =
                          std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
                      while (std::chrono::steady_clock::now() < until) {
                      }
                    }};
  const std::size_t rounds = time_for(1, 0.01, round).size();
  REQUIRE(rounds >= 3);
  REQUIRE(rounds <= 31);
}

TEST_CASE("a floor is known for data that move once, and for a barrier of two") {
  for (const Collective collective : kCollectives) {
    const bool has_data = collective != Collective::kBarrier;
    REQUIRE(has_floor({collective, 2, 8}));
    REQUIRE(has_floor({collective, 2, 0}) == !has_data);
    REQUIRE(has_floor({collective, 2, 4}) == !has_data);
    REQUIRE(has_floor({collective, 4, 1024}) == has_data);
    REQUIRE_FALSE(has_floor({collective, 4, 12}));
    REQUIRE_FALSE(has_floor({collective, 1, 1024}));
    REQUIRE_FALSE(has_floor({collective, 4, (std::size_t{1} << 30) + 4}));
  }
  REQUIRE_FALSE(has_floor({Collective::kPushPull, 2, 1024}));
}

TEST_CASE("the data of a floor arrive by every path") {
  // One line holds 56 bytes and a slot 64 KiB: sizes around both, for halves and for wholes.
  for (const Collective collective : kCollectives) {
    for (const std::size_t bytes : std::initializer_list<std::size_t>{
             8, 56, 64, 112, 120, 4096, 65536, 65544, 131080, 400000}) {
      for (const Pages pages : {Pages::kOwn, Pages::kShared}) {
        const FloorRequest request{collective, 2, bytes, false, pages};
        expect_right(request, shared_memory_floor(request, kSeconds), "shm");
      }
    }
  }
}

TEST_CASE("a floor where both ranks access both buffers is right with any pages") {
  for (const Pages pages : {Pages::kOwn, Pages::kShared}) {
    const FloorRequest request{Collective::kAllReduce, 2, 400000, true, pages};
    expect_right(request, shared_memory_floor(request, kSeconds), "shm");
  }
}

TEST_CASE("bounds for more ranks read and write every byte") {
  for (const Collective collective : kCollectives) {
    for (const int ranks : {3, 4, 5}) {
      for (const std::size_t bytes : std::initializer_list<std::size_t>{20, 4096, 65544, 400000}) {
        const FloorRequest request{collective, ranks, bytes};
        if (has_floor(request))
          expect_right(request, shared_memory_floor(request, kSeconds), "shm");
      }
    }
  }
}

TEST_CASE("floors over loopback are measured for every collective") {
  for (const Collective collective : kCollectives) {
    for (const int ranks : {2, 4}) {
      for (const std::size_t bytes : std::initializer_list<std::size_t>{16, 65544}) {
        const FloorRequest request{collective, ranks, bytes};
        if (!has_floor(request)) continue;
        const Row row = tcp_floor(request, kSeconds);
        expect_right(request, row, "tcp");
        const bool has_direction =
            collective == Collective::kBroadcast || collective == Collective::kReduce ||
            collective == Collective::kGather || collective == Collective::kScatter ||
            collective == Collective::kScan || collective == Collective::kExclusiveScan;
        const bool is_one_way = has_direction && ranks == 2;
        REQUIRE(row.algorithm.starts_with(is_one_way ? "one way, " : "both ways, "));
      }
    }
  }
}

TEST_CASE("sums over loopback are right, whatever remains after the last piece") {
  for (const std::size_t bytes : std::initializer_list<std::size_t>{4, 8, 65548, 1 << 20}) {
    const Row row = tcp_adding(bytes, "", kSeconds);
    expect_right({Collective::kAllReduce, 2, bytes}, row, "tcp");
    REQUIRE(row.wrong == 0U);
    REQUIRE(row.algorithm == "both ways and added, default");
  }
}

TEST_CASE("messages of a floor arrive by every path") {
  for (const P2pKind kind : kP2pKinds) {
    for (const std::size_t bytes :
         std::initializer_list<std::size_t>{1, 8, 56, 57, 4096, 65536, 65537, 200001}) {
      for (const std::size_t window : std::initializer_list<std::size_t>{1, 7}) {
        const MessagesRequest request{kind, bytes, window};
        CAPTURE(to_string(kind), bytes, window);
        REQUIRE(has_floor(request) == (kind == P2pKind::kLatency || bytes * window >= 8));
        if (!has_floor(request)) continue;
        for (const auto floor :
             {shared_memory_floor(request, kSeconds), tcp_floor(request, kSeconds)}) {
          CHECK(floor.wrong == 0);
          CHECK(floor.time_us > 0);
        }
      }
    }
  }
}

TEST_CASE("a rank that waits for the limit of rank 0 for --timeout names rank 0") {
  if (available_cores().size() < 2) return;  // no limit is measured there
  Arguments arguments;
  arguments.timeout = std::chrono::milliseconds(80);
  // there is no rank 0, as if it were stopped
  RunLimit limit(arguments, 1, "shm", make_local_store());
  try {
    limit.measure(4096);
    FAIL("measure returned although there is no rank 0");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ErrorCode::kDeadline);
    CHECK(error.peer() == 0);
    CHECK(std::string(error.what()).starts_with("rank 1: waited 0.08 s for rank 0"));
  }
}

TEST_CASE("the other ranks wait for a limit that rank 0 measures") {
  if (available_cores().size() < 2) return;
  Arguments arguments;
  arguments.timeout = std::chrono::seconds(60);
  const auto store = make_local_store();
  std::jthread waiting([&] { RunLimit(arguments, 1, "shm", store).measure(4096); });
  CHECK(RunLimit(arguments, 0, "shm", store).measure(4096).value_or(0) > 0);
}

TEST_CASE("windows that are too long have no limit") {
  const std::size_t most = std::size_t{256} << 20;
  for (const P2pKind kind : kP2pKinds) {
    CHECK(has_floor(MessagesRequest{kind, most / 4, 4}));
    CHECK_FALSE(has_floor(MessagesRequest{kind, most / 4 + 1, 4}));
  }
}

TEST_CASE("messages have a limit within a host, over transports with known floors") {
  if (available_cores().size() < 2) return;
  const auto limit_over = [](const char* transport, const char* device) {
    Arguments arguments;
    arguments.iterations = 1;
    arguments.device = device;
    return RunLimit(arguments, 0, transport, make_local_store())
        .measure(MessagesRequest{P2pKind::kLatency, 64, 4});
  };
  for (const char* transport : {"shm", "tcp"}) {
    CHECK(limit_over(transport, "").value_or(0) > 0);
    CHECK_FALSE(limit_over(transport, "cuda"));
  }
  for (const char* transport : {"inproc", "ofi", "shm,1Gbit"})
    CHECK_FALSE(limit_over(transport, ""));
}

TEST_CASE("a parameter server has the limits of the data it moves") {
  if (available_cores().size() < 2) return;
  const auto has_limit = [](Collective collective, int ranks, int servers) {
    Arguments arguments;
    arguments.ranks = ranks;
    arguments.problem.collective = collective;
    arguments.problem.servers = servers;
    arguments.iterations = 1;
    RunLimit limit(arguments, 0, "shm", make_local_store());
    return limit.measure(std::size_t{1} << 16).value_or(0) > 0;
  };
  for (const Collective collective :
       {Collective::kPush, Collective::kPull, Collective::kPushPull}) {
    CAPTURE(static_cast<int>(collective));
    CHECK(has_limit(collective, 2, 0));
    CHECK(has_limit(collective, 4, 0));
    CHECK(has_limit(collective, 2, 1) == (collective != Collective::kPushPull));
    CHECK_FALSE(has_limit(collective, 4, 1));
  }
}

}  // namespace kolo::bench
