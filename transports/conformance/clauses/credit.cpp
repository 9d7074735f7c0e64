// Clauses on credit: a minimum is always accepted, and there is an upper bound.
#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

void minimum_credit(const Subject& subject) {
  for (unsigned mixture = 0; mixture < 16; ++mixture) {
    run_ranks(subject, 2, [mixture](Rank& rank) {
      const int peer = 1 - rank.rank();
      Channel& channel = rank.to(peer);
      std::vector<Bytes> data;
      for (int i = 0; i < kMinimumCredit; ++i)
        data.push_back(pattern(rank.rank(), peer, i, rank.segment_bytes()));
      for (int i = 0; i < kMinimumCredit; ++i) {
        const Bytes& segment = data[static_cast<std::size_t>(i)];
        if ((mixture >> i & 1u) != 0) {
          std::byte* slot = channel.reserve(segment.size());
          expect(slot != nullptr, "a slot without waiting");
          std::copy(segment.begin(), segment.end(), slot);
          channel.commit(i + 1 < kMinimumCredit ? kMore : kPlain);
        } else {
          expect(channel.send(segment), "a send without waiting");
        }
      }
      rank.meet("all sent, nothing taken");
      for (int i = 0; i < kMinimumCredit; ++i) {
        rank.expect_pattern(peer, i, rank.segment_bytes(), i % 2 == 0 ? In::kView : In::kReceive);
      }
      rank.drain(peer);
      rank.meet("all taken");
    });
  }
}

void back_pressure(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    constexpr std::size_t kFarTooMuch = std::size_t{256} << 20;
    const std::size_t bytes = rank.segment_bytes();
    if (rank.rank() == 0) {
      const Bytes data = pattern(0, 1, 0, bytes);
      std::size_t accepted = 0;
      while (rank.to(1).send(data)) {
        ++accepted;
        expect(accepted * bytes < kFarTooMuch, "back-pressure");
      }
      // Also asks for a slot: both results are right, since the kernel may have taken some segments
      // by now.
      static_cast<void>(rank.to(1).reserve(bytes));
      rank.store().set("accepted", std::to_string(accepted));
      rank.drain(1);
      rank.meet("taken");
    } else {
      const auto accepted =
          std::stoull(rank.store().get("accepted", Clock::now() + std::chrono::seconds(60)));
      for (std::size_t i = 0; i < accepted; ++i) {
        const Bytes got = rank.receive(0, bytes, i % 2 == 0 ? In::kView : In::kReceive);
        expect_equal(got, pattern(0, 1, 0, bytes), "what was accepted");
      }
      rank.meet("taken");
    }
  });
}

void credit_behind_segments(const Subject& subject) {
  for (const int between : {1, 2, 3, 5, 7, 10, 13}) {
    run_ranks(subject, 2, [between](Rank& rank) {
      constexpr int kSegments = 300;
      if (rank.rank() == 0) {
        for (int i = 0; i < kSegments; ++i) rank.send_pattern(1, i, 300);
        for (int i = 0; i < kMinimumCredit; ++i) rank.expect_pattern(1, i, 300);
        rank.drain(1);
        return;
      }
      // Credit that travels with these segments reaches a peer that does not read them yet.
      for (int i = 0, sent = 0; i < kSegments; ++i) {
        rank.expect_pattern(0, i, 300);
        if ((i + 1) % between == 0 && sent < kMinimumCredit) rank.send_pattern(0, sent++, 300);
      }
      rank.drain(0);
    });
  }
}

void unread_stream(const Subject& subject) {
  run_ranks(subject, 3, [](Rank& rank) {
    const std::size_t bytes = rank.segment_bytes();
    if (rank.rank() == 0) {
      std::vector<Bytes> data;
      for (int i = 0; i < kMinimumCredit; ++i) rank.send_pattern(1, i, bytes);
      for (int i = 0; i < 100; ++i) {
        rank.send_pattern(2, i, 100, Out::kSlot);
        rank.expect_pattern(2, i, 100);
      }
      rank.store().set("done with 2", "");
      rank.drain(1);
      rank.meet("all done");
      return;
    }
    if (rank.rank() == 1) {
      rank.store().get("done with 2", Clock::now() + std::chrono::seconds(60));
      for (int i = 0; i < kMinimumCredit; ++i) rank.expect_pattern(0, i, bytes);
    } else {
      for (int i = 0; i < 100; ++i) {
        rank.expect_pattern(0, i, 100);
        rank.send_pattern(0, i, 100);
      }
    }
    rank.meet("all done");
  });
}

}  // namespace kolo::inline v0::conformance
