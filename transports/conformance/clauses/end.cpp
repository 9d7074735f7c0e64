// Clauses on the end: closing in every state, lost peers, and memory access after quiesce.
#include <algorithm>
#include <atomic>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

namespace {

// A rank that closes with unsent data looks like a dead rank to a peer whose transport is not
// created yet, and creating it may fail then. So such clauses start with a barrier.
constexpr const char* kAllAreMade = "all transports are made";

Error lost_by(Rank& rank, const std::function<bool()>& call) {
  return error_of([&] { rank.until(call, "the loss of the peer"); });
}

// After quiesce, every call that moves segments must throw kAborted, whatever was in progress.
void expect_aborted(Channel& channel) {
  Bytes memory(64);
  const std::span<const std::byte> head(memory.data(), 8);
  std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"release", [&] { channel.release(); }},
      {"commit", [&] { channel.commit(); }},
      {"reserve", [&] { channel.reserve(8); }},
      {"send", [&] { channel.send(memory); }},
      {"a send of nothing", [&] { channel.send({}); }},
      {"a send with more to come", [&] { channel.send(memory, kMore); }},
      {"send_copy", [&] { channel.send_copy(memory); }},
      {"send_gathered", [&] { channel.send_gathered(head, {}, 8); }},
      {"is_drained", [&] { channel.is_drained(); }},
      {"view", [&] { channel.view(8); }},
      {"view_unaligned", [&] { channel.view_unaligned(8); }},
      {"receive", [&] { channel.receive(memory); }},
  };
  if (channel.capabilities().can_answer) {
    calls.emplace_back("answer", [&] { channel.answer(); });
    calls.emplace_back("release_answer", [&] { channel.release_answer(); });
    calls.emplace_back("view_answer", [&] { channel.view_answer(8); });
    calls.emplace_back("view_to_answer", [&] { channel.view_to_answer(8); });
  }
  for (const auto& [name, call] : calls) {
    try {
      call();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kAborted) continue;
      throw std::runtime_error(std::string(name) + " after quiesce says: " + error.what());
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string(name) + " after quiesce says: " + error.what());
    }
    throw std::runtime_error(std::string(name) + " after quiesce says nothing");
  }
  expect(!channel.send_both(head, 8, head), "no two segments sent after quiesce");
  expect(channel.view_both(8, 8).first == nullptr, "no two segments in view after quiesce");
}

// Checks the calls that are still allowed: nothing moves, and no rank sleeps.
void expect_still(Transport& transport, Channel& channel) {
  expect_aborted(channel);
  transport.progress();
  expect(!transport.arm(), "no sleep after quiesce");
  transport.disarm();
  transport.descriptor();
  expect(transport.allocate(100) != nullptr, "memory after quiesce");
  static_cast<void>(channel.statistics());
  static_cast<void>(channel.is_connected());
  static_cast<void>(channel.why_unconnected());
  static_cast<void>(channel.under_way());
  transport.quiesce();
  expect_aborted(channel);
}

void expect_lost(const Error& error, int peer) {
  expect(error.code() == ErrorCode::kPeerLost,
         std::string("the code kPeerLost for: ") + error.what());
  expect(error.peer() == peer, "the peer's rank");
  expect(std::string(error.what()).find("rank " + std::to_string(peer)) != std::string::npos,
         "a text that names the peer");
}

}  // namespace

void lost_while_waiting(const Subject& subject) {
  run_ranks(subject, 3, [](Rank& rank) {
    if (rank.rank() == 2) return rank.drop_transport();
    Bytes got(8);
    expect_lost(lost_by(rank, [&] { return rank.to(2).receive(got); }), 2);
    expect_lost(error_of([&] { rank.to(2).receive(got); }), 2);
    expect_lost(error_of([&] { rank.to(2).view(8); }), 2);
    // Channels between the other ranks still work.
    const int other = 1 - rank.rank();
    rank.send_pattern(other, 0, 100);
    rank.expect_pattern(other, 0, 100);
    rank.drain(other);
  });
}

void lost_while_sending(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    if (rank.rank() == 1) return rank.drop_transport();
    const Bytes data(rank.segment_bytes());
    expect_lost(lost_by(rank,
                        [&] {
                          while (rank.to(1).send(data)) {
                          }
                          return false;
                        }),
                1);
    rank.transport().quiesce();  // the channel may still use `data`
  });
}

void last_segments(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    constexpr int kLast = 2;
    if (rank.rank() == 1) {
      for (int i = 0; i < kLast; ++i) rank.send_pattern(0, i, 5000, Out::kSlot);
      // If the peer's help is not needed, this rank is gone before the peer takes anything.
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
}

void taken_is_drained(const Subject& subject) {
  std::atomic<bool> is_gone = false;
  run_ranks(subject, 2, [&is_gone](Rank& rank) {
    constexpr int kLast = 4;
    const std::size_t bytes[] = {0, 100, 5000, rank.segment_bytes()};
    if (rank.rank() == 0) {
      for (int i = 0; i < kLast; ++i) rank.send_pattern(1, i, bytes[i]);
      rank.until([&] { return is_gone.load(); }, "the end of rank 1");
      return rank.drain(1);
    }
    for (int i = 0; i < kLast; ++i) rank.expect_pattern(0, i, bytes[i]);
    rank.drop_transport();
    is_gone = true;
  });
}

namespace {

void quiesced_while_receiving(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    const std::size_t bytes = rank.segment_bytes();
    const Bytes out = pattern(rank.rank(), peer, 0, bytes);
    Bytes in(bytes, std::byte{0x55});
    if (rank.rank() == 0) {
      // A receive is in progress: the first half may have arrived.
      static_cast<void>(rank.to(peer).receive(in));
      rank.transport().quiesce();
      std::fill(in.begin(), in.end(), std::byte{0x77});
      rank.meet("rank 0 has quiesced");
      rank.meet("rank 1 has sent");
      expect(
          std::all_of(in.begin(), in.end(), [](std::byte byte) { return byte == std::byte{0x77}; }),
          "memory left alone");
      return expect_still(rank.transport(), rank.to(peer));
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
    rank.transport().quiesce();
  });
}

// One segment in view and one slot reserved. So many segments are taken before it that the release
// of this one would return credit to the sender.
void quiesced_with_view(const Subject& subject) {
  constexpr int kTaken = 15;
  run_ranks(subject, 2, [](Rank& rank) {
    constexpr std::size_t kBytes = 100;
    if (rank.rank() == 1) {
      for (int i = 0; i <= kTaken; ++i) rank.send_pattern(0, i, kBytes);
      Bytes got(8);
      expect_lost(lost_by(rank, [&] { return rank.to(0).receive(got); }), 0);
      return rank.transport().quiesce();
    }
    for (int i = 0; i < kTaken; ++i) rank.expect_pattern(1, i, kBytes, In::kView);
    rank.until([&] { return rank.to(1).view(kBytes) != nullptr; });
    rank.until([&] { return rank.to(1).reserve(8) != nullptr; });
    rank.transport().quiesce();
    expect_still(rank.transport(), rank.to(1));
  });
}

// One answer in view, and one segment to be answered.
void quiesced_with_answers(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    constexpr std::size_t kBytes = 5000;
    const int peer = 1 - rank.rank();
    if (!rank.to(peer).capabilities().can_answer) return;
    rank.send_pattern(peer, 0, kBytes, Out::kSlot, kAnswered);
    rank.send_pattern(peer, 1, kBytes, Out::kSlot, kAnswered);
    rank.until([&] { return rank.to(peer).view_to_answer(kBytes) != nullptr; });
    rank.to(peer).answer();
    rank.until([&] { return rank.to(peer).view_to_answer(kBytes) != nullptr; });
    rank.until([&] { return rank.to(peer).view_answer(kBytes) != nullptr; });
    rank.meet("both have all in hand");
    rank.transport().quiesce();
    expect_still(rank.transport(), rank.to(peer));
  });
}

}  // namespace

void quiesced(const Subject& subject) {
  quiesced_while_receiving(subject);
  quiesced_with_view(subject);
  quiesced_with_answers(subject);
}

void quiesced_while_sending(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    rank.meet(kAllAreMade);
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
    // Data that left before quiesce arrives whole or not at all.
    try {
      for (int i = 0; i < kMinimumCredit; ++i) {
        const std::byte* segment = nullptr;
        rank.until([&] { return (segment = rank.to(peer).view(rank.segment_bytes())) != nullptr; });
        rank.to(peer).release();
      }
    } catch (const Error& error) {
      expect_lost(error, 0);
    }
  });
}

void closes_in_every_state(const Subject& subject) {
  const std::vector<std::function<void(Rank&, Bytes&)>> states = {
      [](Rank&, Bytes&) {},                                           // new
      [](Rank& rank, Bytes&) { rank.to(1).reserve(8); },              // a slot reserved
      [](Rank& rank, Bytes& data) { rank.to(1).send(data, kMore); },  // a segment held back
      [](Rank& rank, Bytes& data) {
        // The peer reads all the time, and may be faster.
        for (int i = 0; i < 200 && rank.to(1).send(data); ++i) {
        }
      },                             // full of unsent segments
      [](Rank& rank, Bytes& data) {  // a segment in view
        rank.until([&] { return rank.to(1).view(data.size()) != nullptr; });
      },
      [](Rank& rank, Bytes& data) { rank.to(1).receive(data); },  // half received
      [](Rank& rank, Bytes&) { rank.transport().arm(); },         // about to sleep
      [](Rank& rank, Bytes&) { rank.transport().quiesce(); },     // quiesced
  };
  for (const auto& state : states) {
    run_ranks(subject, 2, [&state](Rank& rank) {
      rank.meet(kAllAreMade);
      Bytes data(rank.segment_bytes());
      if (rank.rank() == 0) {
        state(rank, data);
        // A full transport tries for a while to send the rest; quiesce() avoids that wait.
        rank.transport().quiesce();
        return rank.drop_transport();
      }
      Bytes got(rank.segment_bytes());
      try {
        rank.to(0).send(data);
        rank.until([&] { return rank.to(0).is_drained(); });
        rank.until([&] {
          while (rank.to(0).receive(got)) {
          }
          return false;
        });
      } catch (const Error& error) {
        expect_lost(error, 0);
      }
      rank.transport().quiesce();
    });
  }
}

void comes_again(const Subject& subject) {
  run_ranks(subject, 2, [&subject](Rank& rank) {
    if (rank.rank() == 1) {
      rank.drop_transport();
      rank.meet("rank 0 has seen that rank 1 is gone");
      // Uses the same store keys as before. The transport may refuse it or never answer.
      const Bytes letter(8);
      std::unique_ptr<Transport> again;
      try {
        TransportRequest request = rank.request();
        request.deadline = Clock::now() + std::chrono::milliseconds(300);
        again = subject.make(request);
        for (int i = 0; i < kMinimumCredit; ++i) static_cast<void>(again->channel(0).send(letter));
      } catch (const std::exception&) {
      }
      rank.meet("rank 1 has come again");
      return rank.meet("rank 0 has looked again");  // the sent data stay valid until then
    }
    Bytes got(8);
    expect_lost(lost_by(rank, [&] { return rank.to(1).receive(got); }), 1);
    rank.meet("rank 0 has seen that rank 1 is gone");
    rank.meet("rank 1 has come again");
    rank.transport().progress();
    expect_lost(error_of([&] { rank.to(1).receive(got); }), 1);
    rank.meet("rank 0 has looked again");
  });
}

void two_transports(const Subject& subject) {
  const auto job = make_local_store();
  run_ranks(subject, 2, [&](Rank& one) {
    const TransportRequest request{
        one.rank(), 2, prefixed(job, "two/"), Clock::now() + std::chrono::seconds(60), 128, 2};
    Rank two(subject, request, job);
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
}

void made_many_times(const Subject& subject) {
  for (int i = 0; i < 20; ++i) {
    run_ranks(subject, 3, [](Rank& rank) {
      const int next = (rank.rank() + 1) % 3;
      rank.send_pattern(next, 0, 50);
      rank.expect_pattern((rank.rank() + 2) % 3, 0, 50);
      rank.drain(next);
    });
  }
}

void one_rank_alone(const Subject& subject) {
  const TransportRequest request{0, 1, make_local_store(), Clock::now() + std::chrono::seconds(60),
                                 0, 1};
  const auto transport = subject.make(request);
  transport->progress();
  expect(transport->size() == 1, "a size of 1");
  expect(is_refused([&] { transport->channel(0); }), "no channel to oneself");
  transport->quiesce();
}

void waits_end(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    if (rank.rank() == 1) return rank.meet("the wait is over");
    Bytes got(8);
    Settings settings;
    settings.wait = WaitKind::kBlock;
    for (const WaitKind kind : {WaitKind::kYield, WaitKind::kBlock}) {
      settings.wait = kind;
      WaitPolicy policy(2, 0, settings);
      const Deadline deadline = Clock::now() + std::chrono::milliseconds(30);
      do {
        expect(!rank.to(1).receive(got), "nothing, for nothing was sent");
        rank.transport().progress();
      } while (policy.pause(rank.transport(), rank.store(), deadline));
      expect(Clock::now() >= deadline, "a wait that lasts until its deadline");
    }
    rank.meet("the wait is over");
  });
}

void missing_rank(const Subject& subject) {
  const auto store = make_local_store();
  const TransportRequest request{0, 2, store, Clock::now() + std::chrono::milliseconds(200), 0, 2};
  const Error error = error_of([&] { subject.make(request); });
  const std::string text = error.what();
  expect(error.code() == ErrorCode::kDeadline, "the code kDeadline for: " + text);
  expect(error.peer() == 1, "the missing rank as the peer");
  expect(text.find("rank 1") != std::string::npos, "a text that names rank 1: " + text);
  expect(text.find(" s for ") != std::string::npos, "how long it was waited for: " + text);
}

}  // namespace kolo::inline v0::conformance
