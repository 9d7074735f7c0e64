// Clauses on sleep (arm, poll, disarm): no wake-up is lost, and events already seen do not wake a
// rank.
#include <poll.h>

#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

namespace {

// Sleeps until woken; false after `limit`.
bool sleep_until_woken(Transport& transport,
                       std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  if (!transport.arm()) return true;
  pollfd watched{transport.descriptor(), POLLIN, 0};
  const int ready = ::poll(&watched, 1, static_cast<int>(limit.count()));
  transport.disarm();
  return ready == 1;
}

// Waits without spinning.
void sleep_until(Rank& rank, const std::function<bool()>& is_done) {
  while (!is_done()) {
    rank.transport().progress();
    if (is_done()) return;
    expect(sleep_until_woken(rank.transport()), "to be woken");
  }
}

// Sleeps until no old event wakes this rank, so that the next event is a new one.
void settle(Rank& rank) {
  for (int i = 0; i < 100; ++i) {
    rank.transport().progress();
    if (!sleep_until_woken(rank.transport(), std::chrono::milliseconds(0))) return;
  }
  expect(false, "to be able to sleep");
}

}  // namespace

void woken_by_segment(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    if (rank.rank() == 0) {
      settle(rank);
      rank.meet("rank 0 is about to sleep");
      Bytes got(100);
      sleep_until(rank, [&] { return rank.to(1).receive(got); });
      expect_equal(got, pattern(1, 0, 0, 100), "what woke it");
    } else {
      rank.meet("rank 0 is about to sleep");
      rank.send_pattern(0, 0, 100);
      rank.drain(0);
    }
    rank.meet("awake");
  });
}

void woken_by_credit(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const std::size_t bytes = rank.segment_bytes();
    if (rank.rank() == 0) {
      const Bytes data = pattern(0, 1, 0, bytes);
      int sent = 0;
      while (rank.to(1).send(data)) ++sent;
      rank.store().set("sent", std::to_string(sent + 1));
      sleep_until(rank, [&] { return rank.to(1).send(data); });
      sleep_until(rank, [&] { return rank.to(1).is_drained(); });
    } else {
      const int sent = std::stoi(rank.store().get("sent", Clock::now() + std::chrono::seconds(60)));
      Bytes got(bytes);
      for (int i = 0; i < sent; ++i) sleep_until(rank, [&] { return rank.to(0).receive(got); });
    }
    rank.meet("awake");
  });
}

void woken_by_end(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    if (rank.rank() == 1) {
      rank.meet("rank 0 is about to sleep");
      return rank.drop_transport();
    }
    settle(rank);
    rank.meet("rank 0 is about to sleep");
    Bytes got(8);
    const Error error =
        error_of([&] { sleep_until(rank, [&] { return rank.to(1).receive(got); }); });
    expect(error.code() == ErrorCode::kPeerLost && error.peer() == 1, "rank 1 to be lost");
  });
}

void sleeps_beside_old_news(const Subject& subject) {
  run_ranks(subject, 3, [](Rank& rank) {
    if (rank.rank() == 0) {
      rank.meet("rank 1 has sent");
      settle(rank);  // a segment is there, but this rank waits for rank 2
      rank.meet("rank 0 sleeps all the same");
      sleep_until(rank, [&] { return rank.to(2).view(8) != nullptr; });
      rank.expect_pattern(2, 0, 8, In::kView);
      rank.expect_pattern(1, 0, 8);
    } else if (rank.rank() == 1) {
      rank.send_pattern(0, 0, 8);
      rank.meet("rank 1 has sent");
      rank.meet("rank 0 sleeps all the same");
    } else {
      rank.meet("rank 1 has sent");
      rank.meet("rank 0 sleeps all the same");
      rank.send_pattern(0, 0, 8);
    }
    rank.meet("the end");
  });
}

void thousands_of_sleeps(const Subject& subject) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}}) {
    run_ranks(subject, 3, [bytes](Rank& rank) {
      const int next = (rank.rank() + 1) % 3;
      const int previous = (rank.rank() + 2) % 3;
      Bytes got(bytes);
      for (int i = 0; i < 1500; ++i) {
        const Bytes data = pattern(rank.rank(), next, i, bytes);
        sleep_until(rank, [&] { return rank.to(next).send(data); });
        sleep_until(rank, [&] { return rank.to(previous).receive(got); });
        expect_equal(got, pattern(previous, rank.rank(), i, bytes), "the round's segment");
        sleep_until(rank, [&] { return rank.to(next).is_drained(); });
      }
    });
  }
}

void woken_by_answers(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    for (int i = 0; i < 1000; ++i) {
      if (rank.rank() == 0) {
        rank.send_pattern(1, i, 8, Out::kSlot, kAnswered);
        sleep_until(rank, [&] { return rank.to(1).view_answer(8) != nullptr; });
        rank.to(1).release_answer();
      } else {
        sleep_until(rank, [&] { return rank.to(0).view_to_answer(8) != nullptr; });
        rank.to(0).answer();
      }
    }
  });
}

}  // namespace kolo::inline v0::conformance
