// Clauses on answers: the peer overwrites a segment in place, and its sender reads it back.
#include <algorithm>

#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

namespace {

Bytes answer_to(const Bytes& question) {
  Bytes answer = question;
  for (auto& byte : answer) byte = ~byte;
  return answer;
}

void answer_next(Rank& rank, int peer, int index, std::size_t bytes) {
  std::byte* segment = nullptr;
  rank.until([&] { return (segment = rank.to(peer).view_to_answer(bytes)) != nullptr; },
             "a question");
  const Bytes question(segment, segment + bytes);
  expect_equal(question, pattern(peer, rank.rank(), index, bytes), "the question");
  const Bytes answer = answer_to(question);
  std::copy(answer.begin(), answer.end(), segment);
  rank.to(peer).answer();
}

void expect_answer(Rank& rank, int peer, int index, std::size_t bytes) {
  const std::byte* segment = nullptr;
  rank.until([&] { return (segment = rank.to(peer).view_answer(bytes)) != nullptr; }, "an answer");
  expect_equal(Bytes(segment, segment + bytes), answer_to(pattern(rank.rank(), peer, index, bytes)),
               "the answer");
  rank.to(peer).release_answer();
}

}  // namespace

void answered(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    for (int i = 0; i < 200; ++i) {
      const std::size_t bytes = i % 4 == 0 ? rank.segment_bytes() : static_cast<std::size_t>(i);
      if (rank.rank() == 0) {
        rank.send_pattern(peer, i, bytes, i % 2 == 0 ? Out::kSlot : Out::kSend, kAnswered);
        expect_answer(rank, peer, i, bytes);
      } else {
        answer_next(rank, peer, i, bytes);
      }
    }
  });
}

void answers_mix(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    const std::size_t bytes = rank.segment_bytes();
    for (int turn = 0; turn < 40; ++turn) {
      rank.send_pattern(peer, 3 * turn, bytes, Out::kSlot, kAnswered);
      rank.send_pattern(peer, 3 * turn + 1, 24, Out::kSend);
      rank.send_pattern(peer, 3 * turn + 2, bytes, Out::kSlot, kAnswered);
      answer_next(rank, peer, 3 * turn, bytes);
      rank.expect_pattern(peer, 3 * turn + 1, 24);
      answer_next(rank, peer, 3 * turn + 2, bytes);
      expect_answer(rank, peer, 3 * turn, bytes);
      expect_answer(rank, peer, 3 * turn + 2, bytes);
      rank.drain(peer);
    }
  });
}

void answers_keep_credit(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    if (rank.rank() == 1) {
      const auto asked =
          std::stoi(rank.store().get("asked", Clock::now() + std::chrono::seconds(60)));
      for (int i = 0; i < asked; ++i) answer_next(rank, 0, i, 8);
      rank.meet("answered");
      answer_next(rank, 0, asked, 8);
      return;
    }
    int asked = 0;
    const auto ask = [&] {
      std::byte* slot = rank.to(1).reserve(8);
      if (slot == nullptr) return false;
      const Bytes question = pattern(0, 1, asked++, 8);
      std::copy(question.begin(), question.end(), slot);
      rank.to(1).commit(kAnswered);
      return true;
    };
    while (ask()) expect(asked < 10'000, "an end of credit");
    expect(asked >= kMinimumCredit, "the minimum of credit");
    const int most = asked;
    rank.store().set("asked", std::to_string(most));
    rank.meet("answered");
    expect(!ask(), "no credit while no answer has been released");
    for (int i = 0; i < most; ++i) expect_answer(rank, 1, i, 8);
    rank.until(ask, "credit again");
    expect_answer(rank, 1, most, 8);
  });
}

// A rank that finds no more segments may still read its answers.
void last_answers(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    constexpr std::size_t kBytes = 5000;
    if (rank.rank() == 1) {
      answer_next(rank, 0, 0, kBytes);
      rank.drop_transport();
      return;
    }
    rank.send_pattern(1, 0, kBytes, Out::kSlot, kAnswered);
    rank.until(
        [&] {
          try {
            return rank.to(1).view(8) != nullptr;
          } catch (const Error& error) {
            return error.code() == ErrorCode::kPeerLost;
          }
        },
        "the end of rank 1");
    expect_answer(rank, 1, 0, kBytes);
  });
}

void answers_are_counted(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    rank.send_pattern(peer, 0, 1000, Out::kSlot, kAnswered);
    answer_next(rank, peer, 0, 1000);
    expect_answer(rank, peer, 0, 1000);
    const ChannelStatistics& counts = rank.to(peer).statistics();
    expect(counts.bytes_sent == 2000, "question and answer sent");
    expect(counts.bytes_received == 2000, "question and answer received");
  });
}

}  // namespace kolo::inline v0::conformance
