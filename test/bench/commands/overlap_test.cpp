// Overlap of operations with a computation: it is complete and checked, and its share is right.
#include "bench/commands/overlap.h"

#include <nlohmann/json.hpp>
#include <thread>

#include "bench/commands/computation.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

TEST_CASE("hidden() is the share of the shorter part that costs no time") {
  CHECK(hidden(10, 10, 10) == Approx(1));
  CHECK(hidden(10, 10, 20) == Approx(0));
  CHECK(hidden(10, 10, 15) == Approx(0.5));
  CHECK(hidden(10, 30, 30) == Approx(1));
  CHECK(hidden(30, 10, 35) == Approx(0.5));
  CHECK(hidden(10, 10, 25) == Approx(-0.5));  // slower than one after the other
  CHECK(hidden(10, 10, 5) == Approx(1.5));    // noise
  CHECK(hidden(0, 10, 10) == 0);
}

TEST_CASE("wrong elements of the operation alone are counted once, in however many rows") {
  OverlapRow row;
  row.alone.wrong = 7;
  row.together.wrong = 1;
  CHECK(count_wrong({row, row, row}) == 10);
  row.alone.wrong.reset();
  row.together.wrong.reset();
  CHECK(count_wrong({row}) == 0);
}

TEST_CASE("the closed form of the computation equals its steps") {
  std::uint32_t value = 12345;
  for (std::uint64_t rounds = 0; rounds < 1000; ++rounds) {
    REQUIRE(Computation::iterate(12345, rounds) == value);
    value = value * 1664525 + 1013904223;
  }
}

TEST_CASE("a computation does all its rounds and calls back in between") {
  Computation computation;
  int calls = 0;
  computation.run(10'000, [&calls] { ++calls; });  // throws if the result is wrong
  CHECK(calls >= 1);
  computation.run(1);
  computation.run(0);
  CHECK(computation.rounds_in(100) >= computation.rounds_in(1));
}

TEST_CASE("an overlapped operation is right without progress, with polls and with a thread") {
  Arguments arguments;
  arguments.command = "allreduce";
  arguments.ranks = 2;
  arguments.max_bytes = 256 * 1024;
  arguments.iterations = 4;
  arguments.warmup = 1;
  arguments.passes = 2;
  for (const CallForm form : {CallForm::kBlocking, CallForm::kPersistent}) {
    const auto store = make_local_store();
    std::vector<OverlapRow> rows;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        RankGroup group(rank, 2, *store, arguments.timeout);
        LibraryRequest request;
        request.rank = rank;
        request.size = 2;
        request.store = store;
        request.transport = "inproc";
        request.form = form;
        const auto libraries = make_overlapped(request);
        Bench bench(group, arguments);
        const auto found = measure_overlap(group, bench, libraries, 256 * 1024);
        group.wait();
        if (rank == 0) rows = found;
      });
    }
    for (auto& rank : ranks) rank.join();
    REQUIRE(rows.size() == 3);
    for (const OverlapRow& row : rows) {
      INFO(to_string(row.progress));
      CHECK(row.alone.wrong == 0U);
      CHECK(row.together.wrong == 0U);
      CHECK(row.compute_us > 0);
      const auto line = nlohmann::json::parse(json_line(row));
      CHECK(line["progress"] == to_string(row.progress));
      CHECK(line["hidden"].get<double>() ==
            Approx(hidden(line["alone_us"], line["compute_us"], line["median_us"])));
    }
  }
}
