// Call cache: a repeated call has the results, checks, order and failures of a normal call.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 4;
// The input of rank `rank` at `i` in a round. Its sums are exact in every type.
template <typename T>
T given(int rank, std::size_t i, int round) {
  return static_cast<T>((static_cast<std::size_t>(rank) + i + static_cast<std::size_t>(round)) % 5);
}

template <typename T>
std::vector<T> gifts(int rank, std::size_t count, int round) {
  std::vector<T> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = given<T>(rank, i, round);
  return data;
}

template <typename T>
T sum_of(int size, std::size_t i, int round) {
  T sum{};
  for (int rank = 0; rank < size; ++rank) sum = static_cast<T>(sum + given<T>(rank, i, round));
  return sum;
}

template <typename T>
void expect_elements(const std::vector<T>& found, std::size_t first,
                     const std::function<T(std::size_t)>& right, const std::string& what) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    expect(found[i] == right(first + i), [&] {
      return what + ": element " + std::to_string(first + i) + " of " +
             std::to_string(found.size()) + " is wrong";
    });
  }
}

// The reducing collectives. The data change from round to round; the calls do not.
template <typename T>
void run_reductions(Communicator& c, std::size_t count, int round) {
  const int size = c.size();
  const int root = size - 1;
  const auto type = kElementTypeOf<T>;
  const auto data = gifts<T>(c.rank(), count, round);
  const std::function<T(std::size_t)> sum = [&](std::size_t i) {
    return sum_of<T>(size, i, round);
  };
  auto in_place = data;
  c.all_reduce({in_place.data(), count, type}, ReduceOp::kSum);
  expect_elements(in_place, 0, sum, "all_reduce in place");
  std::vector<T> out(count);
  c.all_reduce(data, {out.data(), count, type}, ReduceOp::kSum);
  expect_elements(out, 0, sum, "all_reduce");
  out.assign(count, T{});
  c.all_reduce_async(data, {out.data(), count, type}, ReduceOp::kSum).wait();
  expect_elements(out, 0, sum, "all_reduce_async");
  c.all_reduce(data, {out.data(), count, type}, ReduceOp::kMin);
  expect_elements<T>(
      out, 0,
      [&](std::size_t i) {
        T least = given<T>(0, i, round);
        for (int r = 1; r < size; ++r) least = std::min(least, given<T>(r, i, round));
        return least;
      },
      "the least");
  std::vector<T> chunk(chunk_count(count, size, c.rank()));
  c.reduce_scatter(data, chunk, ReduceOp::kSum);
  expect_elements(chunk, chunk_begin(count, size, c.rank()), sum, "reduce_scatter");
  out.assign(count, T{});
  c.reduce(data, {out.data(), count, type}, root, ReduceOp::kSum);
  if (c.rank() == root) expect_elements(out, 0, sum, "reduce");
  out.assign(count, T{});
  c.scan(data, {out.data(), count, type}, ReduceOp::kSum);
  const auto sum_of_first = [&](int ranks) {
    return std::function<T(std::size_t)>(
        [ranks, round](std::size_t i) { return sum_of<T>(ranks, i, round); });
  };
  expect_elements(out, 0, sum_of_first(c.rank() + 1), "scan");
  out.assign(count, T{});
  c.exclusive_scan(data, {out.data(), count, type}, ReduceOp::kSum);
  if (c.rank() > 0) expect_elements(out, 0, sum_of_first(c.rank()), "exclusive_scan");
}

// With a server in every rank, and with a dedicated server. The former take the fast path when
// repeated, unless they have an update.
template <typename T>
void run_servers(Communicator& c, std::size_t count, int round) {
  const int size = c.size();
  const auto type = kElementTypeOf<T>;
  const auto data = gifts<T>(c.rank(), count, round);
  const std::function<T(std::size_t)> sum = [&](std::size_t i) {
    return sum_of<T>(size, i, round);
  };
  const ServerPlan everywhere{true, {}};
  std::vector<T> out(count);
  c.push_pull(data, {out.data(), count, type}, ReduceOp::kSum, everywhere);
  expect_elements(out, 0, sum, "push_pull");
  const ServerUpdate twice = [](std::size_t, std::span<std::byte> sums) {
    for (std::size_t i = 0; i < sums.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, sums.data() + i, sizeof value);
      value = static_cast<T>(value + value);
      std::memcpy(sums.data() + i, &value, sizeof value);
    }
  };
  c.push_pull(data, {out.data(), count, type}, ReduceOp::kSum, everywhere, twice);
  expect_elements<T>(
      out, 0, [&](std::size_t i) { return static_cast<T>(sum(i) + sum(i)); },
      "push_pull with an update");
  std::vector<T> chunk(chunk_count(count, size, c.rank()));
  c.push(data, chunk, ReduceOp::kSum, everywhere);
  expect_elements(chunk, chunk_begin(count, size, c.rank()), sum, "push");
  out.assign(count, T{});
  c.pull(chunk, {out.data(), count, type}, everywhere);
  expect_elements(out, 0, sum, "pull");
  if (size == 1) return;
  const ServerPlan last{false, {size - 1}};
  const bool works = c.rank() < size - 1;
  out.assign(count, T{});
  c.push_pull({works ? data.data() : nullptr, count, type},
              {works ? out.data() : nullptr, count, type}, ReduceOp::kSum, last);
  if (!works) return;
  const std::function<T(std::size_t)> of_workers = [&](std::size_t i) {
    return sum_of<T>(size - 1, i, round);
  };
  expect_elements(out, 0, of_workers, "push_pull through the last rank");
}

// Messages around the ring, in the other direction, and several in flight at once.
template <typename T>
void run_messages(Communicator& c, std::size_t count, int round) {
  if (c.size() == 1) return;
  const auto type = kElementTypeOf<T>;
  for (const int step : {1, c.size() - 1}) {
    const int to = (c.rank() + step) % c.size();
    const int from = (c.rank() + c.size() - step) % c.size();
    const auto data = gifts<T>(c.rank(), count, round);
    std::vector<T> out(count);
    const std::function<T(std::size_t)> theirs = [&](std::size_t i) {
      return given<T>(from, i, round);
    };
    if (c.rank() == 0) {
      c.send(data, to);
      c.receive({out.data(), count, type}, from);
    } else {
      c.receive({out.data(), count, type}, from);
      c.send(data, to);
    }
    expect_elements(out, 0, theirs, "a message");
    out.assign(count, T{});
    Work work = c.receive_async({out.data(), count, type}, from);
    c.send(data, to);
    work.wait();
    expect_elements(out, 0, theirs, "a message that was awaited before one was sent");
    out.assign(count, T{});
    Work sent = c.send_async(data, to);
    work = c.receive_async({out.data(), count, type}, from);
    work.wait();
    sent.wait();
    expect_elements(out, 0, theirs, "a message whose send is awaited after the receive");
  }
}

// The collectives that only move data.
template <typename T>
void run_moves(Communicator& c, std::size_t count, int round) {
  const int rank = c.rank();
  const int size = c.size();
  const int root = size - 1;
  const auto type = kElementTypeOf<T>;
  const auto data = gifts<T>(root, count, round);
  const std::function<T(std::size_t)> roots = [&](std::size_t i) {
    return given<T>(root, i, round);
  };
  auto told = gifts<T>(rank, count, round);
  c.broadcast({told.data(), count, type}, root);
  expect_elements(told, 0, roots, "broadcast");
  const std::size_t begin = chunk_begin(count, size, rank);
  std::vector<T> chunk(chunk_count(count, size, rank));
  c.scatter({rank == root ? data.data() : nullptr, count, type}, chunk, root);
  expect_elements(chunk, begin, roots, "scatter");
  std::vector<T> out(count);
  c.all_gather(chunk, {out.data(), count, type});
  expect_elements(out, 0, roots, "all_gather");
  out.assign(count, T{});
  c.gather(chunk, {rank == root ? out.data() : nullptr, count, type}, root);
  if (rank == root) expect_elements(out, 0, roots, "gather");
  const std::size_t whole = count * static_cast<std::size_t>(size);
  const auto to_all = gifts<T>(rank, whole, round);
  std::vector<T> from_all(whole);
  c.all_to_all({to_all.data(), whole, type}, {from_all.data(), whole, type});
  expect_elements<T>(
      from_all, 0,
      [&](std::size_t i) {
        const auto giver = static_cast<int>(i / count);
        return given<T>(giver, static_cast<std::size_t>(rank) * count + i % count, round);
      },
      "all_to_all");
  c.barrier();
}

CommunicatorOptions with_timeout(std::chrono::milliseconds timeout) {
  CommunicatorOptions options;
  options.timeout = timeout;
  return options;
}

void sum_of_two(Communicator& communicator, std::vector<float>& data) {
  communicator.all_reduce({data.data(), 2, ElementType::kFloat32}, ReduceOp::kSum);
}

// The same sum. Sets `is_queued` once the call is in the queue.
void sum_while_watched(Communicator& communicator, std::vector<float>& data,
                       std::promise<void>& is_queued) {
  std::atomic<bool> is_over{false};
  std::thread watcher([&] {
    while (!communicator.progress() && !is_over) std::this_thread::yield();
    is_queued.set_value();
  });
  const RankOutcome outcome = outcome_of([&] { sum_of_two(communicator, data); });
  is_over = true;
  watcher.join();
  if (outcome.code) throw Error(*outcome.code, kNoPeer, outcome.text);
  expect(outcome.text.empty(), outcome.text);
}

// Runs `body` on ranks that have already repeated a small sum.
std::vector<RankOutcome> run_after_repeats(int size, const std::string& transport,
                                           std::chrono::milliseconds timeout,
                                           const CommunicatorBody& body) {
  return run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options = with_timeout(timeout);
    options.transport = transport;
    Communicator communicator(rank, size, store, options);
    std::vector<float> data(2);
    for (int round = 0; round < kRounds; ++round) sum_of_two(communicator, data);
    body(communicator);
  });
}

}  // namespace

TEMPLATE_TEST_CASE("a repeated call uses the new data", "", std::uint8_t, std::int16_t, float,
                   double) {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(from_range(all_or_few({1, 2, 3, 4, 5}, {1, 2, 5})));
  run_ranks(size, transport, [size](Communicator& communicator) {
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t count : {1, 2, 3, 5, 7, 8, 9, 16, 31, 33, 600, 20'000, 140'000}) {
        const bool is_spared = kElementTypeOf<TestType> != ElementType::kFloat32 || size > 2;
        if (count > 600 && is_spared) continue;
        run_reductions<TestType>(communicator, count, round);
        run_moves<TestType>(communicator, count, round);
        run_messages<TestType>(communicator, count, round);
        run_servers<TestType>(communicator, count, round);
      }
    }
  });
}

TEST_CASE("a repeated call checks its buffers like the first one") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(8, 1);
    const auto sum = [&](const float* in, float* out) {
      return outcome_of([&] {
        communicator.all_reduce({in, 4, ElementType::kFloat32}, {out, 4, ElementType::kFloat32},
                                ReduceOp::kSum);
      });
    };
    for (int round = 0; round < kRounds; ++round) {
      expect(sum(data.data(), data.data()).text.empty(), "in place");
      expect(sum(data.data(), data.data() + 4).text.empty(), "side by side");
      const std::array<RankOutcome, 3> refused = {
          sum(nullptr, data.data()), sum(data.data(), nullptr), sum(data.data(), data.data() + 1)};
      expect(refused[0].text == "all_reduce: 'in' is null, but should hold 4 float32",
             refused[0].text);
      expect(refused[1].text == "all_reduce: 'out' is null, but should hold 4 float32",
             refused[1].text);
      expect(refused[2].is_bug && refused[2].text.find("overlap") != std::string::npos,
             refused[2].text);
    }
  });
}

TEST_CASE("a repeated call respects its options") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(4, 1);
    const auto sum = [&](const CallOptions& options) {
      return outcome_of([&] {
        communicator.all_reduce({data.data(), 4, ElementType::kFloat32}, ReduceOp::kSum, options);
      });
    };
    for (int round = 0; round < kRounds; ++round) {
      expect(sum({}).text.empty(), "default options");
      expect(sum({.algorithm = "ring"}).text.empty(), "an algorithm");
      expect(sum({.algorithm = "no such"}).is_bug, "an algorithm that is none");
      expect(sum({.is_persistent = true}).is_bug, "persistent");
      Work work = communicator.all_reduce_async({data.data(), 4, ElementType::kFloat32},
                                                ReduceOp::kSum, {.is_persistent = true});
      work.start();
      work.wait();
      work.start();
      work.wait();
      expect(sum({.timeout = -1ms}).is_bug, "a timeout below 0");
      expect(sum({.scale = 2}).is_bug, "a scale where it has no meaning");
    }
  });
}

TEST_CASE("repeated calls are counted like any operation, with the same bytes") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(2, transport, [](Communicator& communicator) {
    std::vector<float> data(2, 1);
    std::vector<CommunicatorStatistics> counted = {communicator.statistics()};
    for (int round = 0; round < kRounds; ++round) {
      sum_of_two(communicator, data);
      counted.push_back(communicator.statistics());
    }
    for (std::size_t i = 1; i < counted.size(); ++i) {
      const auto growth = [&](std::uint64_t CommunicatorStatistics::*count) {
        return counted[i].*count - counted[i - 1].*count;
      };
      expect(growth(&CommunicatorStatistics::operations) == 1, "one operation");
      expect(growth(&CommunicatorStatistics::payload_bytes_sent) == 8, "8 bytes sent");
      expect(growth(&CommunicatorStatistics::payload_bytes_received) == 8, "8 bytes received");
      expect(growth(&CommunicatorStatistics::header_bytes_sent) == 48, "the rest of an opening");
    }
  });
}

TEST_CASE("repeated calls keep their place among operations in flight, of all threads") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  CommunicatorOptions options;
  options.progress_thread = has_thread;
  run_ranks(
      3, transport,
      [](Communicator& communicator) {
        std::vector<float> small(2);
        std::vector<float> large(20'000);
        for (int round = 0; round < 3 * kRounds; ++round) {
          small.assign(small.size(), 1);
          large.assign(large.size(), 1);
          Work work = communicator.all_reduce_async(large, ReduceOp::kSum);
          sum_of_two(communicator, small);  // queued behind it
          expect(small[0] == 3 && small[1] == 3, "the small sum");
          expect(work.test(), "what was issued before is done before");
          expect(large.front() == 3 && large.back() == 3, "the large sum");
          sum_of_two(communicator, small);  // with nothing in flight before it
          expect(small[0] == 9 && small[1] == 9, "the second small sum");
        }
      },
      options);
}

TEST_CASE("threads that share a communicator may all repeat a call") {
  constexpr int kThreads = 3;
  constexpr int kCalls = 50;
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(2, transport, [](Communicator& communicator) {
    // Every rank issues the same calls, whatever the order of its threads.
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < kCalls; ++i) {
          std::vector<float> data(2, 1);
          const RankOutcome outcome = outcome_of([&] { sum_of_two(communicator, data); });
          if (!outcome.text.empty() || data[0] != 2 || data[1] != 2) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    expect(wrong == 0, std::to_string(wrong) + " sums are wrong");
    expect(communicator.statistics().operations == kThreads * kCalls, "every call is counted");
  });
}

TEST_CASE("a repeated call waits in the queue for a late peer") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::promise<void> waits;
  auto waiting = waits.get_future();
  const auto outcomes = run_after_repeats(2, transport, 60s, [&](Communicator& communicator) {
    std::vector<float> data(2, 1);
    if (communicator.rank() == 0) {
      sum_while_watched(communicator, data, waits);
    } else {
      waiting.wait();
      sum_of_two(communicator, data);
    }
    expect(data[0] == 2 && data[1] == 2, "a wrong sum");
    expect(communicator.statistics().operations == kRounds + 1, "every call is counted");
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.text.empty());
  }
}

TEST_CASE("a repeated call times out and names the peer that never calls") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::promise<void> is_over;
  const auto over = is_over.get_future().share();
  const auto outcomes = run_after_repeats(2, transport, 2s, [&](Communicator& communicator) {
    std::vector<float> data(2);
    if (communicator.rank() == 1) return over.wait();
    const RankOutcome outcome = outcome_of([&] { sum_of_two(communicator, data); });
    const RankOutcome after = outcome_of([&] { sum_of_two(communicator, data); });
    is_over.set_value();
    expect(outcome.code == ErrorCode::kDeadline, outcome.text);
    expect(outcome.text.find("call header from rank 1") != std::string::npos, outcome.text);
    expect(outcome.text.find("all_reduce #" + std::to_string(kRounds)) != std::string::npos,
           outcome.text);
    expect(after.text == outcome.text, "afterwards: " + after.text);
  });
  INFO(outcomes[0].text);
  REQUIRE(outcomes[0].text.empty());
}

TEST_CASE("ranks that repeat different calls all report which rank called what") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(2, 3);
  const auto outcomes = run_after_repeats(size, transport, 20s, [](Communicator& communicator) {
    std::vector<float> data(8);
    const auto other = [&] {
      communicator.all_reduce({data.data(), 3, ElementType::kFloat32}, ReduceOp::kSum);
    };
    other();  // both calls are cached now
    if (communicator.rank() == 0) {
      sum_of_two(communicator, data);
    } else {
      other();
    }
    communicator.barrier();
  });
  const std::string number = std::to_string(kRounds + 1);
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kMismatch);
    REQUIRE(outcome.text == outcomes.front().text);
    REQUIRE(outcome.text.find("rank 0 called all_reduce #" + number + " of 2 float32 sum") !=
            std::string::npos);
    REQUIRE(outcome.text.find("called all_reduce #" + number + " of 3 float32 sum") !=
            std::string::npos);
  }
}

TEST_CASE("a repeated call that only sends fails when its peer called something else") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_after_repeats(2, transport, 20s, [](Communicator& communicator) {
    std::vector<float> data(8);
    const auto tell = [&] { communicator.broadcast({data.data(), 2, ElementType::kFloat32}, 0); };
    for (int round = 0; round < kRounds; ++round) tell();
    if (communicator.rank() == 1) return sum_of_two(communicator, data);
    for (;;) tell();  // until the failure arrives
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kMismatch);
    REQUIRE(outcome.text == outcomes.front().text);
  }
}

TEST_CASE("abort ends a waiting repeated call") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::promise<void> waits;
  auto waiting = waits.get_future();
  const auto outcomes = run_after_repeats(2, transport, 60s, [&](Communicator& communicator) {
    std::vector<float> data(2);
    if (communicator.rank() == 0) {
      sum_while_watched(communicator, data, waits);
    } else {
      waiting.wait();
      communicator.abort("enough");
      sum_of_two(communicator, data);
    }
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kAborted);
    REQUIRE(outcome.text.find("aborted: enough") != std::string::npos);
  }
}

}  // namespace kolo::test
