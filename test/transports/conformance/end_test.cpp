// The end: closing in every state, peers that are lost, what is touched after it and what is not.
#include <algorithm>

#include "test/transports/conformance/ranks.h"

using namespace kolo;
using namespace kolo::test;

namespace {

Error lost_by(Rank& rank, const std::function<bool()>& call) {
  return error_of([&] { rank.until(call, "the loss of the peer"); });
}

void expect_lost(const Error& error, int peer) {
  expect(error.code() == ErrorCode::kPeerLost,
         std::string("the code kPeerLost for: ") + error.what());
  expect(error.peer() == peer, "the peer's rank");
  expect(std::string(error.what()).find("rank " + std::to_string(peer)) != std::string::npos,
         "a text that names the peer");
}

}  // namespace

TEST_CASE("a rank that waits for a lost peer learns which, and again when it asks again") {
  for_each_transport([](const TransportRow& row) {
    run_ranks(row, 3, [](Rank& rank) {
      if (rank.rank() == 2) return rank.drop_transport();
      Bytes got(8);
      expect_lost(lost_by(rank, [&] { return rank.to(2).receive(got); }), 2);
      expect_lost(error_of([&] { rank.to(2).receive(got); }), 2);
      expect_lost(error_of([&] { rank.to(2).view(8); }), 2);
      // The others are as they were.
      const int other = 1 - rank.rank();
      rank.send_pattern(other, 0, 100);
      rank.expect_pattern(other, 0, 100);
      rank.drain(other);
    });
  });
}

TEST_CASE("a rank that sends to a lost peer learns which") {
  for_each_transport([](const TransportRow& row) {
    run_ranks(row, 2, [](Rank& rank) {
      if (rank.rank() == 1) return rank.drop_transport();
      const Bytes data(rank.segment_bytes());
      expect_lost(lost_by(rank,
                          [&] {
                            while (rank.to(1).send(data)) {
                            }
                            return false;
                          }),
                  1);
    });
  });
}

TEST_CASE("the last segments of a rank that is done outlive it") {
  for_each_transport([](const TransportRow& row) {
    run_ranks(row, 2, [](Rank& rank) {
      constexpr int kLast = 2;
      if (rank.rank() == 1) {
        for (int i = 0; i < kLast; ++i) rank.send_pattern(0, i, 5000, Out::kSlot);
        // Where the peer need not help, this rank is gone before the peer takes anything.
        const bool is_drained = rank.to(0).is_drained();
        if (!is_drained) rank.store().set("rank 1 is as good as gone", "");
        rank.drain(0);
        rank.drop_transport();
        if (is_drained) rank.store().set("rank 1 is as good as gone", "");
        return;
      }
      rank.store().get("rank 1 is as good as gone", Clock::now() + std::chrono::seconds(60));
      rank.transport().progress();
      for (int i = 0; i < kLast; ++i) rank.expect_pattern(1, i, 5000, In::kView);
      Bytes more(8);
      expect_lost(lost_by(rank, [&] { return rank.to(1).receive(more); }), 1);
    });
  });
}

TEST_CASE("after quiesce nothing touches memory, and every call says so") {
  for_each_transport([](const TransportRow& row) {
    run_ranks(row, 2, [](Rank& rank) {
      const int peer = 1 - rank.rank();
      const std::size_t bytes = rank.segment_bytes();
      const Bytes out = pattern(rank.rank(), peer, 0, bytes);
      Bytes in(bytes, std::byte{0x55});
      if (rank.rank() == 0) {
        // A receive under way: the first half may have arrived.
        static_cast<void>(rank.to(peer).receive(in));
        rank.transport().quiesce();
        std::fill(in.begin(), in.end(), std::byte{0x77});
        rank.meet("rank 0 has quiesced");
        rank.meet("rank 1 has sent");
        expect(std::all_of(in.begin(), in.end(),
                           [](std::byte byte) { return byte == std::byte{0x77}; }),
               "memory left alone");
        expect(error_of([&] { rank.to(peer).receive(in); }).code() == ErrorCode::kAborted,
               "no receive any more");
        expect(error_of([&] { rank.to(peer).view(8); }).code() == ErrorCode::kAborted,
               "no view any more");
        rank.transport().progress();
        rank.transport().quiesce();
        return;
      }
      rank.meet("rank 0 has quiesced");
      try {
        for (int i = 0; i < kMinimumCredit; ++i) static_cast<void>(rank.to(peer).send(out));
      } catch (const Error& error) {
        expect_lost(error, 0);
      }
      rank.meet("rank 1 has sent");
      Bytes got(8);
      expect_lost(lost_by(rank, [&] { return rank.to(peer).receive(got); }), 0);
    });
  });
}

TEST_CASE("memory that was being sent may go once quiesce has returned") {
  for_each_transport([](const TransportRow& row) {
    run_ranks(row, 2, [](Rank& rank) {
      const int peer = 1 - rank.rank();
      if (rank.rank() == 0) {
        auto data = std::make_unique<Bytes>(pattern(0, 1, 0, rank.segment_bytes()));
        for (int i = 0; i < kMinimumCredit; ++i) static_cast<void>(rank.to(1).send(*data));
        rank.transport().quiesce();
        std::fill(data->begin(), data->end(), std::byte{0xEE});
        data.reset();
        rank.meet("rank 0 has quiesced");
        return;
      }
      rank.meet("rank 0 has quiesced");
      // What had left before is whole or does not come.
      try {
        for (int i = 0; i < kMinimumCredit; ++i) {
          const std::byte* segment = nullptr;
          rank.until(
              [&] { return (segment = rank.to(peer).view(rank.segment_bytes())) != nullptr; });
          rank.to(peer).release();
        }
      } catch (const Error& error) {
        expect_lost(error, 0);
      }
    });
  });
}

TEST_CASE("a transport closes in every state") {
  const std::vector<std::function<void(Rank&, Bytes&)>> states = {
      [](Rank&, Bytes&) {},                                           // fresh
      [](Rank& rank, Bytes&) { rank.to(1).reserve(8); },              // a slot in hand
      [](Rank& rank, Bytes& data) { rank.to(1).send(data, kMore); },  // held back
      [](Rank& rank, Bytes& data) {
        // The peer reads all the while, and may be faster.
        for (int i = 0; i < 200 && rank.to(1).send(data); ++i) {
        }
      },                             // full of unsent segments
      [](Rank& rank, Bytes& data) {  // a view in hand
        rank.until([&] { return rank.to(1).view(data.size()) != nullptr; });
      },
      [](Rank& rank, Bytes& data) { rank.to(1).receive(data); },  // half received
      [](Rank& rank, Bytes&) { rank.transport().arm(); },         // about to sleep
      [](Rank& rank, Bytes&) { rank.transport().quiesce(); },     // quiesced
  };
  for_each_transport([&states](const TransportRow& row) {
    for (const auto& state : states) {
      run_ranks(row, 2, [&state](Rank& rank) {
        Bytes data(rank.segment_bytes());
        if (rank.rank() == 0) {
          state(rank, data);
          // A full transport tries for a while to send the rest: the test need not wait for that.
          rank.transport().quiesce();
          return rank.drop_transport();
        }
        try {
          rank.to(0).send(data);
          rank.until([&] { return rank.to(0).is_drained(); });
          Bytes got(rank.segment_bytes());
          rank.until([&] {
            while (rank.to(0).receive(got)) {
            }
            return false;
          });
        } catch (const Error& error) {
          expect_lost(error, 0);
        }
      });
    }
  });
}

TEST_CASE("two transports of one process do not know each other") {
  for_each_transport([](const TransportRow& row) {
    const auto job = make_local_store();
    run_ranks(row, 2, [&](Rank& one) {
      const TransportRequest request{
          one.rank(), 2, prefixed(job, "two/"), Clock::now() + std::chrono::seconds(60), 128, 2};
      Rank two(row, request, job);
      const int peer = 1 - one.rank();
      for (int i = 0; i < 100; ++i) {
        one.send_pattern(peer, i, 100);
        two.send_pattern(peer, i + 1000, 128);
        two.expect_pattern(peer, i + 1000, 128, In::kView);
        one.expect_pattern(peer, i, 100);
        one.drain(peer);
        two.drain(peer);
      }
      two.drop_transport();
      one.send_pattern(peer, 7, 64);
      one.expect_pattern(peer, 7, 64);
      one.drain(peer);
    });
  });
}

TEST_CASE("a transport is made and closed many times, and nothing stays behind") {
  for_each_transport([](const TransportRow& row) {
    for (int i = 0; i < 20; ++i) {
      run_ranks(row, 3, [](Rank& rank) {
        const int next = (rank.rank() + 1) % 3;
        rank.send_pattern(next, 0, 50);
        rank.expect_pattern((rank.rank() + 2) % 3, 0, 50);
        rank.drain(next);
      });
    }
  });
}

TEST_CASE("one rank alone has a transport, too") {
  for_each_transport([](const TransportRow& row) {
    const TransportRequest request{
        0, 1, make_local_store(), Clock::now() + std::chrono::seconds(60), 0, 1};
    const auto transport = make_for(row, request);
    transport->progress();
    CHECK(transport->size() == 1);
    CHECK_THROWS_AS(transport->channel(0), std::invalid_argument);
    transport->quiesce();
  });
}

TEST_CASE("a rank that never comes is named, with how long it was waited for") {
  for_each_transport([](const TransportRow& row) {
    const auto store = make_local_store();
    const TransportRequest request{0, 2, store, Clock::now() + std::chrono::milliseconds(200),
                                   0, 2};
    const Error error = error_of([&] { make_for(row, request); });
    CHECK(error.code() == ErrorCode::kDeadline);
    CHECK(error.peer() == 1);
    CHECK_THAT(error.what(), ContainsSubstring("rank 1") && ContainsSubstring(" s for "));
  });
}
