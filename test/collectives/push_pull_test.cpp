// Parameter server through the communicator: one server, several, or one in every rank, with and
// without an update.
#include <array>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kSegmentBytes = 256;

bool is_dedicated(const ServerPlan& plan, int rank) {
  return std::find(plan.servers.begin(), plan.servers.end(), rank) != plan.servers.end();
}

bool works(const ServerPlan& plan, int rank) { return !is_dedicated(plan, rank); }

int value_of(int rank, std::size_t index) {
  return static_cast<int>((static_cast<std::size_t>(rank) * 3 + index) % 7) - 2;
}

double sum_of(const ServerPlan& plan, int size, std::size_t index) {
  double sum = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (works(plan, rank)) sum += value_of(rank, index);
  }
  return sum;
}

double workers_of(const ServerPlan& plan, int size) {
  double workers = 0;
  for (int rank = 0; rank < size; ++rank) workers += works(plan, rank) ? 1 : 0;
  return workers;
}

struct Run {
  std::size_t count = 0;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = false;
  bool has_update = false;
};

// An update that depends on the element's position: sum + index.
ServerUpdate add_index(std::atomic<std::size_t>& updated) {
  return [&updated](std::size_t first, std::span<std::byte> sums) {
    for (std::size_t i = 0; i < sums.size() / sizeof(double); ++i) {
      double value = 0;
      std::memcpy(&value, sums.data() + i * sizeof(double), sizeof(double));
      value += static_cast<double>(first + i);
      std::memcpy(sums.data() + i * sizeof(double), &value, sizeof(double));
    }
    updated += sums.size() / sizeof(double);
  };
}

void push_pull(Communicator& communicator, const ServerPlan& plan, const Run& run,
               std::atomic<std::size_t>& updated) {
  const int rank = communicator.rank();
  std::vector<double> in;
  for (std::size_t i = 0; i < run.count; ++i) in.push_back(value_of(rank, i));
  std::vector<double> out(run.count, -99);
  double* pulled = run.is_in_place ? in.data() : out.data();
  const bool is_worker = works(plan, rank);
  communicator.push_pull({is_worker ? in.data() : nullptr, run.count, ElementType::kFloat64},
                         {is_worker ? pulled : nullptr, run.count, ElementType::kFloat64}, run.op,
                         plan, run.has_update ? add_index(updated) : ServerUpdate{});
  if (!is_worker) return;
  for (std::size_t i = 0; i < run.count; ++i) {
    double expected = sum_of(plan, communicator.size(), i);
    if (run.op == ReduceOp::kAverage) expected /= workers_of(plan, communicator.size());
    if (run.has_update) expected += static_cast<double>(i);
    expect(pulled[i] == expected, [&] {
      return "count " + std::to_string(run.count) + ", element " + std::to_string(i) + ": " +
             std::to_string(pulled[i]) + " instead of " + std::to_string(expected);
    });
  }
}

// Pushes and pulls in two operations. The second is issued before the first is over: a server must
// send the result of the push.
void push_then_pull(Communicator& communicator, const ServerPlan& plan, const Run& run,
                    std::atomic<std::size_t>& updated) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  std::vector<double> gradients;
  for (std::size_t i = 0; i < run.count; ++i) gradients.push_back(value_of(rank, i));
  std::vector<double> held(share_of(plan, rank, size, run.count).count);
  std::vector<double> pulled(run.count, -99);
  const bool is_worker = works(plan, rank);

  Work push = communicator.push_async(
      {is_worker ? gradients.data() : nullptr, run.count, ElementType::kFloat64}, held, run.op,
      plan, run.has_update ? add_index(updated) : ServerUpdate{});
  communicator.pull(held, {is_worker ? pulled.data() : nullptr, run.count, ElementType::kFloat64},
                    plan);
  push.wait();
  for (std::size_t i = 0; is_worker && i < run.count; ++i) {
    double expected = sum_of(plan, size, i);
    if (run.op == ReduceOp::kAverage) expected /= workers_of(plan, size);
    if (run.has_update) expected += static_cast<double>(i);
    expect(pulled[i] == expected, [&] {
      return "count " + std::to_string(run.count) + ", element " + std::to_string(i) + ": " +
             std::to_string(pulled[i]) + " instead of " + std::to_string(expected);
    });
  }
}

}  // namespace

TEST_CASE("a pull after a push returns the servers' result of all pushes") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  struct Ranks {
    int size;
    ServerPlan plan;
  };
  const auto ranks = GENERATE(
      Ranks{2, {false, {1}}}, Ranks{4, {false, {3, 1}}}, Ranks{1, {true, {}}}, Ranks{3, {true, {}}},
      Ranks{3, {true, {1}}}, Ranks{3, {false, {2, 0}, {3, 2}}}, Ranks{5, balanced_plan({4, 0}, 5)});
  CommunicatorOptions options;
  options.segment_bytes = kSegmentBytes;
  std::atomic<std::size_t> updated{0};
  std::size_t expected = 0;
  std::vector<Run> runs;
  for (const std::size_t count : std::initializer_list<std::size_t>{0, 1, 3, 32, 65, 997}) {
    for (const bool has_update : {false, true}) {
      runs.push_back({count, has_update ? ReduceOp::kAverage : ReduceOp::kSum, false, has_update});
      expected += has_update ? count : 0;
    }
  }
  run_ranks(
      ranks.size, transport,
      [&](Communicator& communicator) {
        for (const Run& run : runs) push_then_pull(communicator, ranks.plan, run, updated);
      },
      options);
  REQUIRE(updated == expected);
}

TEST_CASE("a rank without input or output in a push or a pull passes null") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store);
    const ServerPlan plan{false, {0}};
    std::array<double, 2> data{1, 2};
    const auto refused = [&](const char* why, const auto& call) {
      try {
        call();
      } catch (const std::invalid_argument& error) {
        expect(std::string(error.what()).find(why) != std::string::npos, error.what());
        return;
      }
      expect(false, std::string("not refused: ") + why);
    };

    if (rank == 0) {
      refused("a dedicated server gives no data: pass null for 'in'",
              [&] { communicator.push(data, data, ReduceOp::kSum, plan); });
      refused("a dedicated server gets no data: pass null for 'out'",
              [&] { communicator.pull(data, data, plan); });
    } else {
      refused("a worker that is not a server gets no data: pass null for 'out'",
              [&] { communicator.push(data, data, ReduceOp::kSum, plan); });
      refused("a worker that is not a server gives no data: pass null for 'in'",
              [&] { communicator.pull(data, data, plan); });
    }
    refused("has 1 entries in parts for 2 servers", [&] {
      communicator.pull({}, data, ServerPlan{true, {0}, {1}});
    });
    refused("a server of the plan has 0 parts", [&] {
      communicator.pull({}, data, ServerPlan{true, {0}, {0, 1}});
    });
    communicator.barrier();  // nothing was issued above
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.text.empty());
  }
}

TEST_CASE("push_pull gives every worker the servers' result of all pushes") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  struct Ranks {
    int size;
    ServerPlan plan;
  };
  const auto ranks =
      GENERATE(Ranks{2, {false, {1}}}, Ranks{3, {false, {0}}}, Ranks{4, {false, {3, 1}}},
               Ranks{1, {true, {}}}, Ranks{2, {true, {}}}, Ranks{3, {true, {}}},
               Ranks{2, {true, {0}, {3, 2}}}, Ranks{4, balanced_plan({1}, 4)});
  CommunicatorOptions options;
  options.segment_bytes = kSegmentBytes;
  std::atomic<std::size_t> updated{0};
  std::size_t expected = 0;
  std::vector<Run> runs;
  for (const std::size_t count :
       std::initializer_list<std::size_t>{0, 1, 2, 3, 31, 32, 33, 64, 65, 997}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
      for (const bool is_in_place : {false, true}) {
        for (const bool has_update : {false, true}) {
          runs.push_back({count, op, is_in_place, has_update});
          expected += has_update ? count : 0;
        }
      }
    }
  }
  run_ranks(
      ranks.size, transport,
      [&](Communicator& communicator) {
        for (const Run& run : runs) push_pull(communicator, ranks.plan, run, updated);
      },
      options);
  REQUIRE(updated == expected);
}

TEST_CASE("an update that throws ends the job with its text") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store);
    double value = 1;
    double* data = rank == 0 ? nullptr : &value;
    communicator.push_pull({data, 1, ElementType::kFloat64}, {data, 1, ElementType::kFloat64},
                           ReduceOp::kSum, {false, {0}}, [](std::size_t, std::span<std::byte>) {
                             throw std::runtime_error("the learning rate is not a number");
                           });
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kAborted);
    REQUIRE(outcome.text.find("the learning rate is not a number (in push_pull #0") !=
            std::string::npos);
  }
}

TEST_CASE("ranks with different servers or shares are a mismatch") {
  struct Plans {
    ServerPlan of_rank_2;
    ServerPlan of_others;
  };
  const auto plans =
      GENERATE(Plans{{true, {0}, {1, 2, 1}}, {true, {0}, {2, 1, 1}}},
               Plans{{true, {0}}, {true, {0}, {1, 1, 1}}}, Plans{{true, {}}, {true, {}, {2, 1, 1}}},
               Plans{{true, {0}}, {true, {}}}, Plans{{false, {0}}, {true, {0}}},
               Plans{{false, {1}}, {false, {0}}});
  const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 3, store);
    double value = 1;
    const ServerPlan& plan = rank == 2 ? plans.of_rank_2 : plans.of_others;
    double* data = works(plan, rank) ? &value : nullptr;
    communicator.push_pull({data, 1, ElementType::kFloat64}, {data, 1, ElementType::kFloat64},
                           ReduceOp::kSum, plan);
    communicator.barrier();
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kMismatch);
  }
}

TEST_CASE("push_pull of a balanced plan sends the same bytes from every rank") {
  for (std::size_t n = 3; n <= 5; ++n) {
    for (std::size_t k = 1; k <= n + 1; ++k) {
      const auto size = static_cast<int>(n + k);
      std::vector<int> servers;
      for (auto rank = static_cast<int>(n); rank < size; ++rank) servers.push_back(rank);
      const ServerPlan plan = balanced_plan(servers, size);
      // 0, 1, fewer than the parts, a prime, and a multiple of the parts that is exact
      const std::size_t parts = k >= n ? k : n * n + k * n - 2 * k;
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, parts - 1, std::size_t{997}, 20 * parts}) {
        run_ranks(size, "inproc", [&](Communicator& communicator) {
          std::atomic<std::size_t> updated{0};
          const auto before = communicator.statistics().payload_bytes_sent;
          push_pull(communicator, plan, {count, ReduceOp::kSum, true, false}, updated);
          if (count != 20 * parts || k >= n) return;
          const std::size_t sent = communicator.statistics().payload_bytes_sent - before;
          expect(sent == 20 * 2 * n * (n - 1) * sizeof(double), [&] {
            return std::to_string(sent) + " bytes from rank " + std::to_string(communicator.rank());
          });
        });
      }
    }
  }
}

}  // namespace kolo::test
