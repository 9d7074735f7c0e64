// Several operations in flight, issued by several threads, with and without a progress thread.
#include <atomic>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 30'000;

Work sum_async(Communicator& communicator, std::vector<float>& data) {
  return communicator.all_reduce_async(data, ReduceOp::kSum);
}

std::vector<std::vector<float>> buffers_of(const Communicator& communicator, std::size_t number) {
  std::vector<std::vector<float>> buffers;
  for (std::size_t i = 0; i < number; ++i) {
    buffers.emplace_back(kCount + i, static_cast<float>(communicator.rank() + 1));
  }
  return buffers;
}

void expect_sums(const std::vector<float>& data, int size) {
  const auto sum = static_cast<float>(size * (size + 1) / 2);
  for (const float value : data)
    expect(value == sum, [&] { return "a wrong sum: " + std::to_string(value); });
}

CommunicatorOptions with_progress_thread(bool has_one) {
  CommunicatorOptions options;
  options.progress_thread = has_one;
  return options;
}

}  // namespace

TEST_CASE("operations in flight complete whatever the order of the waits") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  const auto size = GENERATE(2, 3);
  run_ranks(
      size, transport,
      [&](Communicator& communicator) {
        auto buffers = buffers_of(communicator, 6);
        std::vector<Work> works;
        for (auto& buffer : buffers) works.push_back(sum_async(communicator, buffer));
        works[5].wait();
        for (Work& work : works) expect(work.test(), "an earlier operation is not done");
        for (Work& work : works) work.wait();
        for (const auto& buffer : buffers) expect_sums(buffer, size);
      },
      with_progress_thread(has_thread));
}

TEST_CASE("polling alone completes an operation") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(kCount, static_cast<float>(communicator.rank() + 1));
    Work work = sum_async(communicator, data);
    while (!work.test()) std::this_thread::yield();
    expect_sums(data, 2);
    expect(!communicator.progress(), "something is in flight");
  });
}

TEST_CASE("a progress thread completes an operation while no thread waits") {
  run_ranks(
      2, "inproc",
      [](Communicator& communicator) {
        std::vector<float> data(kCount, static_cast<float>(communicator.rank() + 1));
        sum_async(communicator, data);
        while (communicator.statistics().operations == 0) std::this_thread::yield();
        expect_sums(data, 2);
      },
      with_progress_thread(true));
}

TEST_CASE("two threads that wait for different operations both return") {
  const auto has_thread = GENERATE(false, true);
  run_ranks(
      2, "inproc",
      [](Communicator& communicator) {
        for (int round = 0; round < 20; ++round) {
          auto buffers = buffers_of(communicator, 2);
          Work first = sum_async(communicator, buffers[0]);
          Work second = sum_async(communicator, buffers[1]);
          std::thread other([&] { second.wait(); });
          first.wait();
          other.join();
          expect_sums(buffers[0], 2);
          expect_sums(buffers[1], 2);
        }
      },
      with_progress_thread(has_thread));
}

TEST_CASE("blocking and asynchronous calls run in the order of issue") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    auto buffers = buffers_of(communicator, 2);
    Work first = sum_async(communicator, buffers[0]);
    communicator.all_reduce(std::span<float>(buffers[1]));
    expect(first.test(), "the second overtook the first");
    communicator.barrier();
    expect_sums(buffers[0], 3);
    expect_sums(buffers[1], 3);
  });
}

TEST_CASE("spans are reduced and broadcast asynchronously as well") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    auto buffers = buffers_of(communicator, 2);
    Work sum = communicator.all_reduce_async(std::span<float>(buffers[0]));
    Work copy = communicator.broadcast_async(std::span<float>(buffers[1]), 1);
    copy.wait();
    sum.wait();
    expect_sums(buffers[0], 3);
    for (const float value : buffers[1]) expect(value == 2, "not what rank 1 gave");
  });
}

TEST_CASE("a wait with a short deadline of its own leaves the operation in flight") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(kCount, static_cast<float>(communicator.rank() + 1));
    if (communicator.rank() == 0) {
      Work work = sum_async(communicator, data);
      try {
        work.wait(Clock::now());
      } catch (const Error& error) {
        expect(error.code() == ErrorCode::kDeadline, error.what());
        expect(std::string(error.what()).find("still in flight") != std::string::npos,
               error.what());
      }
      work.wait();
    } else {
      communicator.all_reduce(std::span<float>(data));
    }
    expect_sums(data, 2);
  });
}

TEST_CASE("a handle outlives its communicator") {
  std::vector<Work> works(2);
  std::vector<std::vector<float>> buffers(2, std::vector<float>(kCount, 1.0F));
  run_ranks(2, "inproc", [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    works[rank] = sum_async(communicator, buffers[rank]);
    communicator.barrier();
  });
  for (Work& work : works) {
    REQUIRE(work.test());
    REQUIRE_NOTHROW(work.wait());
  }
}

TEST_CASE("a persistent operation is planned once and started many times") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(2, transport, [](Communicator& communicator) {
    std::vector<float> data(kCount);
    Work sum = communicator.all_reduce_async(data, ReduceOp::kSum, {.is_persistent = true});
    expect(sum.test(), "what is only planned is not in flight");
    for (int time = 0; time < 5; ++time) {
      data.assign(kCount, static_cast<float>(communicator.rank() + 1));
      sum.start();
      sum.wait();
      expect_sums(data, 2);
    }
    expect(communicator.statistics().operations == 5, "five operations were done");
  });
}

TEST_CASE("a persistent push_pull keeps its server plan") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(100);
    Work push_pull;
    {
      const ServerPlan plan{.everywhere = true, .servers = {}};
      push_pull = communicator.push_pull_async(data, data, ReduceOp::kSum, plan, {},
                                               {.is_persistent = true});
    }
    for (int time = 0; time < 3; ++time) {
      data.assign(100, static_cast<float>(communicator.rank() + 1));
      push_pull.start();
      push_pull.wait();
      expect_sums(data, 2);
    }
  });
}

TEST_CASE("an operation that cannot be started is refused") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(kCount);
    const CallOptions persistent{.is_persistent = true};
    const auto said = [](const std::function<void()>& body) { return outcome_of(body).text; };
    const auto blocking = [&] { communicator.barrier(persistent); };
    expect(said(blocking).find("planned by the ..._async form") != std::string::npos,
           said(blocking));
    Work once = sum_async(communicator, data);
    expect(said([&] { once.start(); }).find("not persistent") != std::string::npos,
           "not persistent");
    once.wait();
    Work again = communicator.all_reduce_async(data, ReduceOp::kSum, persistent);
    again.start();
    expect(said([&] { again.start(); }).find("in flight") != std::string::npos, "in flight");
    again.wait();
  });
}

TEST_CASE("a callback runs at the end of its operation and may issue the next one") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  run_ranks(
      2, transport,
      [&](Communicator& communicator) {
        auto buffers = buffers_of(communicator, 2);
        std::atomic<int> ended{0};
        std::atomic<bool> is_second_issued{false};
        Work second;
        Work first = sum_async(communicator, buffers[0]);
        first.when_done([&](const Error* failure) {
          if (failure != nullptr) return;
          expect_sums(buffers[0], 2);
          second = sum_async(communicator, buffers[1]);
          ++ended;
          is_second_issued = true;
        });
        while (!is_second_issued) {
          communicator.progress();
          std::this_thread::yield();
        }
        second.wait();
        second.when_done([&](const Error* failure) { ended += failure == nullptr ? 1 : 0; });
        expect_sums(buffers[1], 2);
        expect(ended == 2, "both ends were heard of");
      },
      with_progress_thread(has_thread));
}

TEST_CASE("a callback receives the failure of its operation") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = "inproc";
    Communicator communicator(rank, 2, store, options);
    std::vector<float> data(kCount);
    std::string heard = "nothing";
    Work work = sum_async(communicator, data);
    work.when_done([&](const Error* failure) { heard = failure ? failure->what() : "success"; });
    // Wait until both ranks have begun. A rank that has not would get the failure as it begins.
    if (rank == 1) store->set("rank 1 has begun", "");
    if (rank == 0) {
      store->get("rank 1 has begun", Clock::now() + std::chrono::seconds(60));
      communicator.abort("for a test");
    }
    const std::string thrown = outcome_of([&] { work.wait(); }).text;
    expect(heard == thrown && heard.find("for a test") != std::string::npos, heard);
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
}

namespace {

constexpr auto kInt = ElementType::kInt32;
constexpr auto kSum = ReduceOp::kSum;
using Ints = std::vector<std::int32_t>;
using Lengths = std::vector<std::size_t>;

// One collective, in its asynchronous and in its blocking form.
struct Form {
  const char* name;
  Work (*begin)(Communicator&, const Ints& in, Ints& out, const CallOptions&);
  void (*run)(Communicator&, const Ints& in, Ints& out);
};

// Shares of three ranks: one, two and three elements.
Lengths lengths() { return {1, 2, 3}; }
std::size_t own_length(const Communicator& c) {
  return lengths()[static_cast<std::size_t>(c.rank())];
}
template <typename Elements>
auto part(Elements& elements, std::size_t count) {
  return std::span(elements).first(count);
}
std::size_t total(const Lengths& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}
// Rank r sends r + p + 1 elements to rank p, and receives as many.
Lengths shares(const Communicator& c) {
  const auto rank = static_cast<std::size_t>(c.rank());
  return {rank + 1, rank + 2, rank + 3};
}

const Form kForms[] = {
    {"reduce_scatter",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.reduce_scatter_async(part(in, 12), part(out, 4), kSum, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.reduce_scatter(part(in, 12), part(out, 4), kSum);
     }},
    {"all_gather",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.all_gather_async(part(in, 4), part(out, 12), o);
     },
     [](Communicator& c, const Ints& in, Ints& out) { c.all_gather(part(in, 4), part(out, 12)); }},
    {"broadcast",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       if (c.rank() == 1) out = in;
       return c.broadcast_async(part(out, 12), 1, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       if (c.rank() == 1) out = in;
       c.broadcast(part(out, 12), 1);
     }},
    {"reduce",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.reduce_async(part(in, 12), part(out, 12), 2, kSum, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.reduce(part(in, 12), part(out, 12), 2, kSum);
     }},
    {"gather",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.gather_async(part(in, 4), part(out, 12), 1, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) { c.gather(part(in, 4), part(out, 12), 1); }},
    {"scatter",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.scatter_async(part(in, 12), part(out, 4), 1, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) { c.scatter(part(in, 12), part(out, 4), 1); }},
    {"all_to_all",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.all_to_all_async(part(in, 12), part(out, 12), o);
     },
     [](Communicator& c, const Ints& in, Ints& out) { c.all_to_all(part(in, 12), part(out, 12)); }},
    {"scan",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.scan_async(part(in, 12), part(out, 12), kSum, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) { c.scan(part(in, 12), part(out, 12), kSum); }},
    {"exclusive_scan",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.exclusive_scan_async(part(in, 12), part(out, 12), kSum, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.exclusive_scan(part(in, 12), part(out, 12), kSum);
     }},
    {"barrier",
     [](Communicator& c, const Ints&, Ints&, const CallOptions& o) { return c.barrier_async(o); },
     [](Communicator& c, const Ints&, Ints&) { c.barrier(); }},
    {"push_pull",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.push_pull_async(part(in, 12), part(out, 12), kSum,
                                {.everywhere = true, .servers = {}}, {}, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.push_pull(part(in, 12), part(out, 12), kSum, {.everywhere = true, .servers = {}});
     }},
    {"reduce_scatter_v",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.reduce_scatter_v_async(part(in, 6), part(out, own_length(c)), lengths(), kSum, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.reduce_scatter_v(part(in, 6), part(out, own_length(c)), lengths(), kSum);
     }},
    {"all_gather_v",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.all_gather_v_async(part(in, own_length(c)), part(out, 6), lengths(), o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.all_gather_v(part(in, own_length(c)), part(out, 6), lengths());
     }},
    {"gather_v",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.gather_v_async(part(in, own_length(c)), part(out, 6), lengths(), 0, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.gather_v(part(in, own_length(c)), part(out, 6), lengths(), 0);
     }},
    {"scatter_v",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.scatter_v_async(part(in, 6), part(out, own_length(c)), lengths(), 0, o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.scatter_v(part(in, 6), part(out, own_length(c)), lengths(), 0);
     }},
    {"all_to_all_v",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       return c.all_to_all_v_async(part(in, total(shares(c))), shares(c),
                                   part(out, total(shares(c))), shares(c), o);
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       c.all_to_all_v(part(in, total(shares(c))), shares(c), part(out, total(shares(c))),
                      shares(c));
     }},
    {"send and receive",
     [](Communicator& c, const Ints& in, Ints& out, const CallOptions& o) {
       if (c.rank() == 0) return c.send_async(part(in, 12), 2, o);
       if (c.rank() == 2) return c.receive_async(part(out, 12), 0, o);
       return Work();
     },
     [](Communicator& c, const Ints& in, Ints& out) {
       if (c.rank() == 0) c.send(part(in, 12), 2);
       if (c.rank() == 2) c.receive(part(out, 12), 0);
     }},
};

}  // namespace

TEST_CASE("every asynchronous form, also persistent, gives the result of its blocking form") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(3, transport, [](Communicator& communicator) {
    Ints in(12);
    std::iota(in.begin(), in.end(), 100 * communicator.rank());
    for (const Form& form : kForms) {
      Ints wanted(12, -1);
      form.run(communicator, in, wanted);
      Ints found(12, -1);
      Work work = form.begin(communicator, in, found, {});
      if (work.is_valid()) work.wait();
      expect(found == wanted, std::string(form.name) + " differs when asynchronous");
      Ints again(12, -1);
      Work plan = form.begin(communicator, in, again, {.is_persistent = true});
      for (int i = 0; i < 2 && plan.is_valid(); ++i) {
        plan.start();
        plan.wait();
      }
      expect(again == wanted, std::string(form.name) + " differs when persistent");
    }
  });
}

// With or without another operation in flight behind it; on the progress thread or on the polling
// thread.
TEST_CASE("a callback may destroy its communicator") {
  const auto has_thread = GENERATE(true, false);
  const auto has_more = GENERATE(false, true);
  run_ranks(
      2, "shm",
      [&](Communicator& communicator) {
        std::optional<Communicator> own(communicator.duplicate());
        std::vector<float> data(kCount, 1);
        std::vector<float> more(kCount, 1);
        std::atomic<bool> is_destroyed{false};
        Work work = sum_async(*own, data);
        Work behind = has_more ? sum_async(*own, more) : Work();
        work.when_done([&](const Error*) {
          own.reset();
          is_destroyed = true;
        });
        while (!is_destroyed) {
          if (has_thread) {
            std::this_thread::yield();
          } else {
            work.test();
          }
        }
        while (has_more && !behind.test()) std::this_thread::yield();
      },
      with_progress_thread(has_thread));
}

TEST_CASE("communicators over several transports run side by side in one process") {
  const std::vector<std::string> transports = transports_under_test();
  std::vector<std::thread> jobs;
  std::vector<std::string> failures(transports.size());
  for (std::size_t job = 0; job < transports.size(); ++job) {
    jobs.emplace_back([&, job] {
      const RankOutcome outcome = outcome_of([&] {
        run_ranks(2, transports[job], [](Communicator& communicator) {
          for (int i = 0; i < 20; ++i) {
            std::vector<float> data(kCount, static_cast<float>(communicator.rank() + 1));
            communicator.all_reduce(std::span<float>(data));
            expect_sums(data, communicator.size());
          }
        });
      });
      failures[job] = outcome.text;
    });
  }
  for (std::thread& job : jobs) job.join();
  for (const std::string& failure : failures) CHECK(failure.empty());
}

}  // namespace kolo::test
