// Messages between two ranks: several in flight, in any order, in both directions at once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kInt = ElementType::kInt32;
using Ints = std::vector<std::int32_t>;

// More than any channel takes before its peer receives.
constexpr std::size_t kLarge = 1 << 20;

CommunicatorOptions patient(bool has_thread = false) {
  CommunicatorOptions options;
  options.timeout = 60s;
  options.progress_thread = has_thread;
  return options;
}

// The data of message `number` from rank `from`.
Ints content(std::size_t count, int from, int number = 0) {
  Ints data(count);
  std::iota(data.begin(), data.end(), 1'000'000 * from + 1000 * number);
  return data;
}

void expect_content(const Ints& data, int from, int number = 0) {
  expect(data == content(data.size(), from, number),
         "not message " + std::to_string(number) + " of rank " + std::to_string(from));
}

// The rank `steps` further along the ring.
int after(const Communicator& communicator, int steps) {
  return (communicator.rank() + communicator.size() + steps) % communicator.size();
}

}  // namespace

TEST_CASE("a shift around the ring by receive_async and send completes for any length") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  for (int size = 2; size <= 5; ++size) {
    run_ranks(
        size, transport,
        [](Communicator& communicator) {
          const int left = after(communicator, -1);
          for (const std::size_t count : {std::size_t{0}, std::size_t{3}, kLarge}) {
            const Ints mine = content(count, communicator.rank());
            Ints theirs(count);
            Work work = communicator.receive_async({theirs.data(), count, kInt}, left);
            communicator.send({mine.data(), count, kInt}, after(communicator, 1));
            work.wait();
            expect_content(theirs, left);
          }
          expect(communicator.statistics().operations == 6, "a message each way, three times");
        },
        patient(has_thread));
  }
}

TEST_CASE("send_receive shifts around the ring, either way, and with one rank") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  for (int size = 1; size <= 5; ++size) {
    run_ranks(
        size, transport,
        [](Communicator& communicator) {
          for (const int step : {1, -1}) {
            const Ints mine = content(kLarge, communicator.rank());
            Ints theirs(kLarge);
            communicator.send_receive({mine.data(), kLarge, kInt}, after(communicator, step),
                                      {theirs.data(), kLarge, kInt}, after(communicator, -step));
            expect_content(theirs, after(communicator, -step));
          }
        },
        patient());
  }
}

TEST_CASE("receives posted in the reverse order of arrival all complete") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(3, 5);
  run_ranks(
      size, transport,
      [size](Communicator& communicator) {
        Ints go(1);
        if (communicator.rank() != 0) {  // rank p sends after the message of rank p - 1 has arrived
          const Ints mine = content(kLarge, communicator.rank());
          if (communicator.rank() > 1) communicator.receive({go.data(), 1, kInt}, 0);
          communicator.send({mine.data(), kLarge, kInt}, 0);
          return;
        }
        std::vector<Ints> all(static_cast<std::size_t>(size), Ints(kLarge));
        std::vector<Work> works(all.size());
        for (std::size_t peer = all.size() - 1; peer > 0; --peer) {
          works[peer] =
              communicator.receive_async({all[peer].data(), kLarge, kInt}, static_cast<int>(peer));
        }
        for (int peer = 1; peer < size; ++peer) {
          works[static_cast<std::size_t>(peer)].wait();
          expect_content(all[static_cast<std::size_t>(peer)], peer);
          if (peer + 1 < size) communicator.send({go.data(), 1, kInt}, peer + 1);
        }
      },
      patient());
}

TEST_CASE("many messages in flight keep their order between two ranks") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  constexpr int kNumber = 40;
  run_ranks(
      3, transport,
      [](Communicator& communicator) {
        std::vector<Ints> sent;
        std::vector<Ints> received;
        std::vector<Work> works;
        for (int number = 0; number < kNumber; ++number) {
          const auto count = static_cast<std::size_t>(number % 3 == 0 ? 30'000 : number);
          sent.push_back(content(count, communicator.rank(), number));
          received.emplace_back(2 * count);
        }
        for (int number = 0; number < kNumber; ++number) {
          const auto i = static_cast<std::size_t>(number);
          const std::size_t count = sent[i].size();
          for (const int step : {1, 2}) {
            std::int32_t* into = received[i].data() + (step == 1 ? 0 : count);
            works.push_back(
                communicator.receive_async({into, count, kInt}, after(communicator, step)));
            works.push_back(
                communicator.send_async({sent[i].data(), count, kInt}, after(communicator, step)));
          }
        }
        for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
        for (int number = 0; number < kNumber; ++number) {
          const Ints& both = received[static_cast<std::size_t>(number)];
          const auto middle = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
          expect_content(Ints(both.begin(), middle), after(communicator, 1), number);
          expect_content(Ints(middle, both.end()), after(communicator, 2), number);
        }
        expect(!communicator.progress(), "something is left in flight");
        expect(communicator.statistics().operations == 4 * kNumber, "all are counted");
      },
      patient(has_thread));
}

TEST_CASE("a collective waits for earlier messages, and later messages wait for it") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(
      3, transport,
      [](Communicator& communicator) {
        const int left = after(communicator, -1);
        const int right = after(communicator, 1);
        std::vector<Ints> received(2, Ints(kLarge));
        std::vector<Ints> sent = {content(kLarge, communicator.rank(), 0),
                                  content(kLarge, communicator.rank(), 1)};
        std::int32_t sum = 1;
        Work first = communicator.receive_async({received[0].data(), kLarge, kInt}, left);
        Work second = communicator.send_async({sent[0].data(), kLarge, kInt}, right);
        Work third = communicator.all_reduce_async({&sum, 1, kInt}, ReduceOp::kSum);
        Work fourth = communicator.receive_async({received[1].data(), kLarge, kInt}, left);
        Work fifth = communicator.send_async({sent[1].data(), kLarge, kInt}, right);
        third.wait();
        expect(first.test() && second.test(), "the collective overtook a message");
        expect(sum == 3, "a wrong sum");
        fifth.wait();
        fourth.wait();
        expect_content(received[0], left, 0);
        expect_content(received[1], left, 1);
      },
      patient());
}

TEST_CASE("a message may end before one that was issued earlier") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(
      3, transport,
      [](Communicator& communicator) {
        Ints data(1);
        if (communicator.rank() == 0) {
          Ints other(1);
          Work late = communicator.receive_async({other.data(), 1, kInt}, 2);
          Work early = communicator.receive_async({data.data(), 1, kInt}, 1);
          std::vector<std::string> ends;
          late.when_done([&](const Error*) { ends.emplace_back("late"); });
          early.when_done([&](const Error*) { ends.emplace_back("early"); });
          early.wait();
          expect(!late.test(), "what rank 2 has not sent is here");
          communicator.send({data.data(), 1, kInt}, 2);
          late.wait();
          expect(ends == std::vector<std::string>{"early", "late"},
                 "callbacks in the order of ends");
        } else if (communicator.rank() == 1) {
          communicator.send({data.data(), 1, kInt}, 0);
        } else {
          communicator.receive({data.data(), 1, kInt}, 0);
          communicator.send({data.data(), 1, kInt}, 0);
        }
      },
      patient());
}

TEST_CASE("a long message makes progress while its rank waits for later small ones") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::atomic<bool> has_come{false};
  run_ranks(
      3, transport,
      [&](Communicator& communicator) {
        Ints long_one = content(kLarge, 0);
        Ints small(1, 7);
        if (communicator.rank() == 1) {
          communicator.receive({long_one.data(), kLarge, kInt}, 0);
          expect_content(long_one, 0);
          has_come = true;
          return;
        }
        const bool sends_long = communicator.rank() == 0;
        const int other = sends_long ? 2 : 0;
        Work sent;
        if (sends_long) sent = communicator.send_async({long_one.data(), kLarge, kInt}, 1);
        for (int goes_on = 1; goes_on == 1;) {
          Work told = communicator.receive_async({small.data(), 1, kInt}, other);
          const Ints mine(1, sends_long && has_come ? 0 : 1);
          communicator.send_async({mine.data(), 1, kInt}, other).wait();
          told.wait();
          goes_on = sends_long ? mine[0] : small[0];
        }
        if (sends_long) sent.wait();
      },
      patient());
}

TEST_CASE("small messages complete in any order of waits, alone and many") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const int number = GENERATE(1, 2, 100);
  const bool is_backward = GENERATE(false, true);
  run_ranks(
      2, transport,
      [=](Communicator& communicator) {
        const int other = 1 - communicator.rank();
        for (int round = 0; round < 3; ++round) {  // the later rounds use the call cache
          std::vector<Work> works;
          std::vector<Ints> sent;
          std::vector<Ints> received(static_cast<std::size_t>(number), Ints(2));
          for (int i = 0; i < number; ++i) {
            sent.push_back(content(2, communicator.rank(), i));
            works.push_back(communicator.receive_async(
                {received[static_cast<std::size_t>(i)].data(), 2, kInt}, other));
            works.push_back(communicator.send_async({sent.back().data(), 2, kInt}, other));
          }
          if (is_backward) std::ranges::reverse(works);
          for (Work& work : works) work.wait();
          for (int i = 0; i < number; ++i)
            expect_content(received[static_cast<std::size_t>(i)], other, i);
        }
        expect(!communicator.progress(), "something is left in flight");
        expect(communicator.statistics().operations == static_cast<unsigned>(6 * number),
               "all are counted");
      },
      patient());
}

TEST_CASE("a wait for a small message that does not match reports both calls") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::atomic<bool> is_awaited{false};
  std::atomic<bool> has_left{false};
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options = patient();
    options.transport = transport;
    Communicator communicator(rank, 2, store, options);
    Ints data(3);
    for (int round = 0; round < 3; ++round) {
      if (rank == 0) {
        communicator.receive_async({data.data(), 2, kInt}, 1).wait();
      } else {
        communicator.send({data.data(), 2, kInt}, 0);
      }
    }
    if (rank == 1) {
      while (!is_awaited) std::this_thread::yield();
      communicator.send({data.data(), 3, kInt}, 0);
      has_left = true;
      return;
    }
    Work first = communicator.receive_async({data.data(), 2, kInt}, 1);
    Work second = communicator.receive_async({data.data(), 2, kInt}, 1);
    is_awaited = true;
    while (!has_left) std::this_thread::yield();
    const RankOutcome heard = outcome_of([&] { first.wait(); });
    const RankOutcome after_it = outcome_of([&] { second.wait(); });
    expect(heard.code == ErrorCode::kMismatch, heard.text);
    expect(heard.text.find("of 3 int32") != std::string::npos, heard.text);
    expect(after_it.text == heard.text, "the next one ended otherwise: " + after_it.text);
  });
  INFO(outcomes.front().text);
  REQUIRE(outcomes.front().text.empty());
}

TEST_CASE("persistent messages are started again in any order") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(
      3, transport,
      [](Communicator& communicator) {
        const CallOptions persistent{.is_persistent = true};
        const int left = after(communicator, -1);
        Ints mine(kLarge);
        Ints theirs(kLarge);
        Work receive = communicator.receive_async({theirs.data(), kLarge, kInt}, left, persistent);
        Work send = communicator.send_async({mine.data(), kLarge, kInt}, after(communicator, 1),
                                            persistent);
        for (int number = 0; number < 6; ++number) {
          std::ranges::copy(content(kLarge, communicator.rank(), number), mine.begin());
          (number % 2 == 0 ? receive : send).start();
          (number % 2 == 0 ? send : receive).start();
          (number % 3 == 0 ? receive : send).wait();
          (number % 3 == 0 ? send : receive).wait();
          expect_content(theirs, left, number);
        }
      },
      patient());
}

TEST_CASE("a message of one thread makes progress while another thread waits") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(
      2, transport,
      [](Communicator& communicator) {
        Ints ping = content(kLarge, communicator.rank());
        Ints pong(kLarge);
        if (communicator.rank() == 1) {
          communicator.receive({pong.data(), kLarge, kInt}, 0);
          expect_content(pong, 0);
          communicator.send({ping.data(), kLarge, kInt}, 0);
          return;
        }
        std::atomic<bool> has_issued{false};
        std::thread waiter([&] {
          Work work = communicator.receive_async({pong.data(), kLarge, kInt}, 1);
          has_issued = true;
          work.wait();
        });
        while (!has_issued) std::this_thread::yield();
        communicator.send({ping.data(), kLarge, kInt}, 1);
        waiter.join();
        expect_content(pong, 1);
      },
      patient());
}

TEST_CASE("a message issued by a callback runs beside those in flight") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(
      2, transport,
      [](Communicator& communicator) {
        // Rank 0 answers from a callback while a receive that depends on the answer is in flight.
        Ints question(1, 7);
        Ints answer = content(kLarge, communicator.rank());
        Ints last(1);
        const int other = 1 - communicator.rank();
        if (communicator.rank() == 1) {
          communicator.send({question.data(), 1, kInt}, 0);
          communicator.receive({answer.data(), kLarge, kInt}, 0);
          expect_content(answer, 0);
          communicator.send({question.data(), 1, kInt}, 0);
          return;
        }
        Work sent;
        Work first = communicator.receive_async({question.data(), 1, kInt}, other);
        Work second = communicator.receive_async({last.data(), 1, kInt}, other);
        first.when_done([&](const Error* failure) {
          if (failure == nullptr) {
            sent = communicator.send_async({answer.data(), kLarge, kInt}, other);
          }
        });
        second.wait();
        sent.wait();
        expect(last[0] == 7, "not what rank 1 sent last");
      },
      patient());
}

TEST_CASE("wait_any returns the message that arrived first, wherever it is in the list") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  run_ranks(
      4, transport,
      [](Communicator& communicator) {
        Ints data(kLarge);
        Ints go(1);
        if (communicator.rank() != 0) {
          communicator.receive({go.data(), 1, kInt}, 0);
          communicator.send({data.data(), kLarge, kInt}, 0);
          return;
        }
        std::vector<Ints> all(4, Ints(kLarge));
        std::vector<Work> works(4);  // works[0] has no operation
        for (int peer = 1; peer < 4; ++peer) {
          auto& into = all[static_cast<std::size_t>(peer)];
          works[static_cast<std::size_t>(peer)] =
              communicator.receive_async({into.data(), kLarge, kInt}, peer);
        }
        for (const int peer : {2, 3, 1}) {
          expect(!wait_any(works, Clock::now() + 1ms), "a message is here that was not sent");
          communicator.send({go.data(), 1, kInt}, peer);
          const auto ended = wait_any(works);
          expect(ended == static_cast<std::size_t>(peer), "another message has ended");
          works[*ended].wait();
          works[*ended] = {};
        }
      },
      patient(has_thread));
}

TEST_CASE("wait_any returns at once if an operation has ended before") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    Ints data(2);
    if (communicator.rank() == 1) return communicator.send({data.data(), 1, kInt}, 0);
    std::vector<Work> works = {communicator.receive_async({data.data(), 1, kInt}, 1)};
    works[0].wait();
    expect(wait_any(works, Clock::now() - 1s) == std::size_t{0}, "it has ended");
  });
}

TEST_CASE("wait_any refuses a list without an operation, or of several communicators") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    Communicator other = communicator.duplicate();
    Ints data(2);
    const int peer = 1 - communicator.rank();
    expect(outcome_of([] { wait_any(std::vector<Work>(2)); }).is_bug, "no operation");
    const std::vector<Work> works = {communicator.receive_async({data.data(), 1, kInt}, peer),
                                     other.receive_async({data.data() + 1, 1, kInt}, peer)};
    expect(outcome_of([&] { wait_any(works); }).is_bug, "two communicators");
    const std::int32_t one = 1;
    communicator.send({&one, 1, kInt}, peer);
    other.send({&one, 1, kInt}, peer);
    for (Work work : works) work.wait();
  });
}

}  // namespace kolo::test
