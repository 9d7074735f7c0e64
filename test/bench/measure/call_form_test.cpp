// Call forms: every collective in every form, from the same call of the benchmark.
#include "bench/measure/call_form.h"

#include <functional>
#include <thread>

#include "bench/cli/arguments.h"
#include "bench/cli/commands.h"
#include "bench/measure/measure.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

constexpr int kRanks = 2;

std::vector<Row> measure_in(CallForm form, const std::string& command, Collective collective) {
  Arguments arguments;
  arguments.command = command;
  arguments.problem.collective = collective;
  arguments.problem.is_in_place = collective != Collective::kAllToAll;
  arguments.ranks = kRanks;
  arguments.transport = "inproc";
  arguments.max_bytes = 64 * 1024;
  arguments.iterations = 4;
  arguments.warmup = 1;
  arguments.passes = 2;
  arguments.form = form;
  const auto store = make_local_store();
  std::vector<Row> rows;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      RankGroup group(rank, kRanks, *store, arguments.timeout);
      LibraryRequest request;
      request.rank = rank;
      request.size = kRanks;
      request.store = store;
      request.transport = "inproc";
      request.form = form;
      const auto kolo = make_kolo(request);
      Bench bench(group, arguments);
      // a persistent plan is made anew for the next size
      auto small = bench.measure({kolo.get()}, 4096);
      auto large = bench.measure({kolo.get()}, 64 * 1024);
      group.wait();
      if (rank == 0) rows = {small.front(), large.front()};
    });
  }
  for (auto& rank : ranks) rank.join();
  return rows;
}

}  // namespace

TEST_CASE("every collective is right in every form, at two sizes with one library") {
  for (const auto& [name, collective] : collective_commands()) {
    for (const CallForm form : kCallForms) {
      INFO(name << ", " << to_string(form));
      for (const Row& row : measure_in(form, name, collective)) {
        CHECK(row.wrong == 0U);
        CHECK(row.form == form);
      }
    }
  }
}

TEST_CASE("a persistent form starts the same plan each time") {
  Communicator alone(0, 1, make_local_store());
  AsyncCaller caller(std::make_shared<Communicator>(std::move(alone)), CallForm::kPersistent, {});
  std::vector<float> data(16, 3.0F);
  Problem problem;
  problem.count = data.size();
  for (int i = 0; i < 3; ++i) {
    Work work = caller.begin(problem, data.data(), data.data());
    work.wait();
    CHECK(data == std::vector<float>(16, 3.0F));
  }
}
