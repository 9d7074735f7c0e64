// Key servers and their clients over every transport: rules, bits, sizes and order.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collectives/key_server.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using Kind = Consistency::Kind;

CommunicatorOptions patient(bool has_thread = false) {
  CommunicatorOptions options;
  options.timeout = 60s;
  options.progress_thread = has_thread;
  return options;
}

// values -= gradient / samples / 4
void descend(const KeyUpdate& update) {
  for (std::size_t i = 0; i < update.values.size(); ++i)
    update.values[i] -= update.gradient[i] / static_cast<float>(update.samples) / 4;
}

// A flag that a test sets and waits for, with a deadline.
class Signal {
 public:
  void give() { promise_.set_value(); }
  void wait() {
    expect(future_.wait_for(60s) == std::future_status::ready, "the other worker does not come");
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

struct Worker {
  Worker(Communicator& communicator, const KeyPlan& key_plan)
      : plan(key_plan),
        client(communicator, key_plan),
        gradient(plan.elements),
        values(plan.elements) {}

  std::span<float> part(std::vector<float>& all, std::size_t key) const {
    return std::span(all).subspan(plan.keys[key].first, plan.keys[key].count);
  }
  // The last keys first, as backward does.
  void push_pull(std::int64_t iteration, double samples = 1) {
    for (std::size_t key = plan.keys.size(); key-- > 0;)
      client.push_pull(key, iteration, part(gradient, key), samples, part(values, key));
  }
  void iterate(std::int64_t iteration, double samples = 1) {
    push_pull(iteration, samples);
    client.wait_all();
  }

  const KeyPlan& plan;
  KeyClient client;
  std::vector<float> gradient;
  std::vector<float> values;
};

// One server, rank 0, of keys of 100 elements.
KeyPlan plan_of(std::size_t elements) {
  return plan_keys(std::vector<KeyRange>{{0, {elements}}}, std::vector<int>{0}, 100);
}

KeyServerStatistics serve(Communicator& communicator, const KeyPlan& plan, Consistency rule,
                          std::vector<float>* values = nullptr) {
  std::vector<float> own(plan.elements);
  return serve_keys(communicator, plan, values == nullptr ? own : *values, descend,
                    {.consistency = rule});
}

float gradient_of(int rank, std::int64_t iteration, std::size_t index) {
  const auto seed =
      static_cast<std::uint32_t>(index * 7919 + static_cast<std::size_t>(iteration) * 31 +
                                 static_cast<std::size_t>(rank) * 104729);
  std::minstd_rand random(seed + 1);
  random.discard(3);
  const auto mantissa = static_cast<float>(random() % 100'000) - 50'000;
  return std::ldexp(mantissa, static_cast<int>(random() % 24) - 12);
}

}  // namespace

TEST_CASE("asynchronous workers go on while another one stalls, also for longer than the timeout") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  Signal go;
  auto options = patient(has_thread);
  const bool is_long = transport == "inproc";
  if (is_long) options.timeout = 1s;
  const auto stall = is_long ? 2 * options.timeout : 0s;
  const KeyPlan plan = plan_of(250);
  run_ranks(
      3, transport,
      [&](Communicator& communicator) {
        if (communicator.rank() == 0) {
          const auto statistics = serve(communicator, plan, {Kind::kAsynchronous, 0});
          expect(statistics.lead.size() >= 20, "no worker was far ahead");
          expect(statistics.staleness.size() >= 20, "no gradient was stale");
          expect(statistics.dropped == 0, "nothing is dropped");
          expect(statistics.updates == statistics.gradients, "each gradient is an update");
          expect(statistics.answers == statistics.gradients, "each push is answered");
          return;
        }
        Worker worker(communicator, plan);
        worker.gradient.assign(plan.elements, 4.0F);
        worker.iterate(0);
        if (communicator.rank() == 2) {
          go.wait();
          worker.iterate(1);
        } else {
          const auto until = Clock::now() + stall;
          std::int64_t iteration = 1;
          for (; iteration < 30 || Clock::now() < until; ++iteration) {
            const float before = worker.values[0];
            worker.iterate(iteration);
            expect(worker.values[0] <= before - 1, "the answer lacks this worker's gradient");
          }
          go.give();
        }
        worker.client.finish();
      },
      options);
}

TEST_CASE("a bounded worker waits for the slowest one, and no longer than for the bound") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  constexpr int kBound = 3;
  Signal go;
  const KeyPlan plan = plan_of(250);
  run_ranks(
      3, transport,
      [&](Communicator& communicator) {
        if (communicator.rank() == 0) {
          const auto statistics = serve(communicator, plan, {Kind::kBounded, kBound});
          expect(statistics.lead.size() == kBound + 1, "the bound was not reached, or exceeded");
          return;
        }
        Worker worker(communicator, plan);
        if (communicator.rank() == 2) {
          go.wait();
          worker.iterate(0);
        } else {
          for (int iteration = 0; iteration < kBound; ++iteration) worker.iterate(iteration);
          worker.push_pull(kBound);
          for (int poll = 0; poll < 200; ++poll) {
            for (std::size_t key = 0; key < plan.keys.size(); ++key)
              expect(!worker.client.test(key), "answered too far ahead");
          }
          go.give();
          worker.client.wait_all();
        }
        worker.client.finish();
      },
      patient());
}

TEST_CASE(
    "a bounded worker may wait longer than the timeout while the server is busy with others") {
  Signal is_held;
  Signal go;
  auto options = patient();
  options.timeout = 1s;
  const KeyPlan plan = plan_of(5000);
  run_ranks(
      4, "inproc",
      [&](Communicator& communicator) {
        const int rank = communicator.rank();
        if (rank == 0) {
          serve(communicator, plan, {Kind::kBounded, 2});
          return;
        }
        Worker worker(communicator, plan);
        if (rank == 1) {  // answered when all others have pushed
          for (std::int64_t iteration = 0; iteration < 2; ++iteration) worker.iterate(iteration);
          worker.push_pull(2);
          is_held.give();
          worker.client.wait_all();
        } else if (rank == 2) {
          is_held.wait();
          const auto until = Clock::now() + 2 * options.timeout;
          while (Clock::now() < until) {
            for (std::size_t key = 0; key < plan.keys.size(); ++key)
              worker.client.pull(key, worker.part(worker.values, key));
            worker.client.wait_all();
          }
          worker.iterate(0);
          go.give();
        } else {
          go.wait();
          worker.iterate(0);
        }
        worker.client.finish();
      },
      options);
}

TEST_CASE("workers at random speed stay within the bound") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const int bound = GENERATE(0, 1, 4);
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  constexpr int kSize = 4;
  std::vector<std::atomic<std::int64_t>> pushed(kSize);
  const KeyPlan plan = plan_keys(std::vector<KeyRange>{{0, {250}}}, std::vector<int>{3}, 100);
  run_ranks(
      kSize, transport,
      [&](Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        if (rank == 3) {
          const auto statistics = serve(communicator, plan, {Kind::kBounded, bound});
          expect(statistics.lead.size() <= static_cast<std::size_t>(bound) + 1, "too far ahead");
          return;
        }
        std::mt19937 random(seed + static_cast<unsigned>(rank));
        Worker worker(communicator, plan);
        for (std::int64_t iteration = 0; iteration < 40; ++iteration) {
          for (auto polls = random() % 50; polls > 0; --polls) worker.client.progress();
          pushed[rank] = iteration + 1;
          worker.iterate(iteration);
          for (std::size_t other = 0; other < 3; ++other)
            expect(pushed[other] >= iteration + 1 - bound, "answered too far ahead");
        }
        worker.client.finish();
      },
      patient());
}

TEST_CASE("synchronous rules give the bits of a sum in rank order, over several servers") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  const Consistency rule = GENERATE(Consistency{Kind::kSynchronous, 0},
                                    Consistency{Kind::kBounded, 0}, Consistency{Kind::kBackup, 0});
  // A key of several fragments, one of 1 element, a server without a share of the first range, and
  // one without any.
  const std::vector<int> servers = {1, 4, 5};
  const KeyPlan plan = plan_keys(std::vector<KeyRange>{{300'007, {1, 0, 0}}, {0, {7, 300'000, 0}}},
                                 servers, 290'000);
  constexpr int kIterations = 3;
  std::vector<float> expected(plan.elements, 1.0F);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float sum = (gradient_of(0, iteration, i) + gradient_of(2, iteration, i)) +
                        gradient_of(3, iteration, i);
      expected[i] -= sum / 6 / 4;
    }
  }
  std::atomic<int> workers_done = 0;
  run_ranks(
      6, transport,
      [&](Communicator& communicator) {
        const int rank = communicator.rank();
        if (std::ranges::find(servers, rank) != servers.end()) {
          std::vector<float> values(plan.elements, 1.0F);
          const auto statistics = serve(communicator, plan, rule, &values);
          expect(statistics.staleness.size() <= 1, "a gradient was stale");
          expect(statistics.dropped == 0, "a gradient was dropped");
          return;
        }
        Worker worker(communicator, plan);
        for (int iteration = 0; iteration < kIterations; ++iteration) {
          for (std::size_t i = 0; i < plan.elements; ++i)
            worker.gradient[i] = gradient_of(rank, iteration, i);
          worker.iterate(iteration, 2);
        }
        worker.client.finish();
        expect(worker.values == expected, "other bits than the sum in rank order");
        ++workers_done;
      },
      patient(has_thread));
  REQUIRE(workers_done == 3);
}

TEST_CASE("with a backup worker the others go on, and the late worker joins them") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  constexpr int kIterations = 10;
  Signal go;
  Signal has_joined;
  const KeyPlan plan = plan_of(250);
  const auto keys = plan.keys.size();
  run_ranks(
      4, transport,
      [&](Communicator& communicator) {
        const int rank = communicator.rank();
        if (rank == 0) {
          const auto statistics = serve(communicator, plan, {Kind::kBackup, 1});
          expect(statistics.dropped == keys, "the late gradients of one iteration are dropped");
          expect(statistics.updates == (kIterations + 1) * keys, "other updates");
          return;
        }
        Worker worker(communicator, plan);
        worker.gradient.assign(plan.elements, rank == 3 ? 1e9F : 4.0F * static_cast<float>(rank));
        if (rank == 3) {
          go.wait();
          worker.iterate(0);
          expect(worker.client.next_iteration() >= kIterations, "the late worker may skip");
          worker.client.finish();
          has_joined.give();
          return;
        }
        // 10 and 20 samples, sums 4 and 8: the mean of both is 0.4, whatever rank 3 has.
        float expected = 0;
        for (int iteration = 0; iteration < kIterations; ++iteration) {
          expected -= 12.0F / 30.0F / 4;
          worker.iterate(iteration, 10.0 * rank);
          expect(worker.values == std::vector<float>(plan.elements, expected), "a wrong mean");
        }
        if (rank == 1) go.give();
        has_joined.wait();
        worker.iterate(kIterations, 10.0 * rank);
        worker.client.finish();
      },
      patient());
}

TEST_CASE("push and pull work apart, and several epochs follow each other") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const KeyPlan plan = plan_of(130);
  run_ranks(
      2, transport,
      [&](Communicator& communicator) {
        std::vector<float> values(plan.elements, 10.0F);
        if (communicator.rank() == 0) {
          for (int epoch = 0; epoch < 3; ++epoch) {
            serve_keys(communicator, plan, values, descend,
                       {.consistency = {Kind::kAsynchronous, 0}, .first_iteration = 2 * epoch});
          }
          return;
        }
        Worker worker(communicator, plan);
        worker.gradient.assign(plan.elements, 4.0F);
        float expected = 10;
        for (int iteration = 0; iteration < 6; ++iteration) {
          for (const bool is_after : {false, true}) {
            for (std::size_t key = 0; key < plan.keys.size(); ++key)
              worker.client.pull(key, worker.part(worker.values, key));
            worker.client.wait_all();
            expect(worker.values == std::vector<float>(plan.elements, expected), "wrong values");
            if (is_after) break;
            for (std::size_t key = 0; key < plan.keys.size(); ++key)
              worker.client.push(key, iteration, worker.part(worker.gradient, key), 1);
            worker.client.wait_all();
            expected -= 1;
          }
          if (iteration % 2 == 1) worker.client.finish();
        }
        expect(worker.client.statistics().pushes == 12, "two keys, six times");
        expect(worker.client.statistics().answers == 24, "each pulled before and after");
      },
      patient());
}

TEST_CASE("of several waiting keys the first in order of priority is sent next") {
  const KeyPlan plan =
      plan_keys(std::vector<KeyRange>{{0, {6'000'000}}}, std::vector<int>{0}, 1'000'000);
  REQUIRE(plan.keys.size() == 6);
  Signal go;
  run_ranks(
      2, "inproc",
      [&](Communicator& communicator) {
        if (communicator.rank() == 0) {
          std::vector<float> values(plan.elements);
          std::vector<std::size_t> order;
          go.wait();
          serve_keys(communicator, plan, values,
                     [&](const KeyUpdate& update) { order.push_back(update.key); },
                     {.consistency = {Kind::kAsynchronous, 0}});
          expect(order == std::vector<std::size_t>{5, 4, 0, 1, 2, 3},
                 "two keys were on their way, the others wait");
          return;
        }
        Worker worker(communicator, plan);
        worker.push_pull(0);
        go.give();
        worker.client.wait_all();
        worker.client.finish();
      },
      patient());
}

TEST_CASE("values may be pulled into the memory of the gradient") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const KeyPlan plan = plan_keys(std::vector<KeyRange>{{0, {400'000}}}, std::vector<int>{2});
  run_ranks(
      3, transport,
      [&](Communicator& communicator) {
        if (communicator.rank() == 2) {
          serve(communicator, plan, {});
          return;
        }
        KeyClient client(communicator, plan);
        std::vector<float> data(plan.elements, 4.0F);
        client.push_pull(0, 0, data, 1, data);
        client.wait(0);
        expect(data == std::vector<float>(plan.elements, -1.0F), "wrong values");
        client.finish();
      },
      patient());
}

TEST_CASE("wrong arguments of servers and clients are refused before anything is sent") {
  const KeyPlan plan = plan_of(150);
  run_ranks(
      2, "inproc",
      [&](Communicator& communicator) {
        std::vector<float> values(plan.elements);
        std::vector<float> short_values(plan.elements - 1);
        const auto is_refused = [](const std::function<void()>& call) {
          expect(outcome_of(call).is_bug, "not refused");
        };
        if (communicator.rank() == 0) {
          is_refused([&] { KeyClient(communicator, plan); });
          is_refused([&] { serve(communicator, plan, {}, &short_values); });
          is_refused([&] { serve(communicator, plan, {Kind::kBackup, 1}); });
          is_refused([&] { serve(communicator, plan, {Kind::kBounded, -1}); });
          is_refused([&] { serve_keys(communicator, plan, values, nullptr); });
          serve(communicator, plan, {});
          return;
        }
        is_refused([&] { serve(communicator, plan, {}); });
        KeyPlan outside = plan;
        outside.servers = {2};
        is_refused([&] { KeyClient(communicator, outside); });
        outside.servers = {0, 1};
        is_refused([&] { KeyClient(communicator, outside); });
        KeyClient client(communicator, plan);
        const std::span<float> first = std::span(values).first(plan.keys[0].count);
        is_refused([&] { client.push(2, 0, first, 1); });
        is_refused([&] { client.push(0, 0, values, 1); });
        is_refused([&] { client.push(0, 0, first, std::nan("")); });
        is_refused([&] { client.push(0, -1, first, 1); });
        is_refused([&] { client.pull(0, values); });
        is_refused([&] { client.wait(2); });
        client.finish();
      },
      patient());
}

}  // namespace kolo::test
