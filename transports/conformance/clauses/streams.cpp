// Clauses on streams: segments arrive whole, in order and unchanged, for every way to send and
// receive.
#include <algorithm>
#include <random>
#include <set>

#include "transports/base/preposted_receives.h"
#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

namespace {

// Plan that both ends of a channel know: size of each segment, and how each end handles it.
struct Plan {
  std::size_t bytes;
  Out out;
  In in;
  unsigned flags;
};

std::vector<Plan> random_plan(unsigned seed, std::size_t longest, int segments) {
  std::mt19937 random(seed);
  const std::vector<std::size_t> lengths = {
      0, 1, 2, 3, 7, 16, 63, 64, 65, 1000, 4095, 4096, 4097, longest / 2 + 1, longest - 1, longest};
  constexpr Out kOuts[] = {Out::kSlot, Out::kSend, Out::kGathered};
  constexpr In kIns[] = {In::kView, In::kViewUnaligned, In::kReceive, In::kReceiveCold};
  std::vector<Plan> plan;
  for (int i = 0; i < segments; ++i) {
    const auto length = lengths[random() % lengths.size()];
    const bool is_last = i + 1 == segments;
    plan.push_back({std::min(length, longest), kOuts[random() % std::size(kOuts)],
                    kIns[random() % std::size(kIns)],
                    !is_last && random() % 3 == 0 ? kMore : kPlain});
  }
  return plan;
}

void follow_as_sender(Rank& rank, int peer, const std::vector<Plan>& plan, int from, int to) {
  for (int i = from; i < to; ++i) {
    const Plan& step = plan[static_cast<std::size_t>(i)];
    rank.send_pattern(peer, i, step.bytes, step.out, step.flags);
  }
}

void follow_as_receiver(Rank& rank, int peer, const std::vector<Plan>& plan, int from, int to) {
  for (int i = from; i < to; ++i) {
    const Plan& step = plan[static_cast<std::size_t>(i)];
    rank.expect_pattern(peer, i, step.bytes, step.in);
  }
}

// As follow_as_receiver, for a channel with preposted receives: declares expectations at every
// fourth segment.
void follow_as_teller(Rank& rank, int peer, const std::vector<Plan>& plan) {
  auto* const channel = dynamic_cast<PrepostedReceives*>(&rank.to(peer));
  std::vector<Bytes> places;
  for (const Plan& step : plan) places.emplace_back(step.bytes);
  const auto is_viewed = [&](std::size_t i) {
    return plan[i].in == In::kView || plan[i].in == In::kViewUnaligned;
  };
  const auto place = [&](std::size_t i) {
    return is_viewed(i) ? std::span<std::byte>() : std::span(places[i]);
  };
  for (std::size_t i = 0; i < plan.size(); ++i) {
    for (std::size_t ahead = 0; i % 4 == 0 && ahead <= channel->expected_segments(); ++ahead) {
      if (i + ahead >= plan.size() || !channel->expect(ahead, place(i + ahead))) break;
    }
    if (is_viewed(i)) {
      rank.expect_pattern(peer, static_cast<int>(i), plan[i].bytes, plan[i].in);
      continue;
    }
    const unsigned flags = plan[i].in == In::kReceiveCold ? kCold : kPlain;
    rank.until([&] { return rank.to(peer).receive(place(i), flags); });
    expect_equal(places[i], pattern(peer, rank.rank(), static_cast<int>(i), plan[i].bytes),
                 "what was expected");
  }
}

}  // namespace

void knows_itself(const Subject& subject) {
  run_ranks(subject, 3, [&subject](Rank& rank) {
    const std::string_view name = subject.calls_itself;
    expect(!rank.transport().name().empty(), "a name");
    expect(name.empty() || rank.transport().name() == name, "its name");
    expect(rank.transport().rank() == rank.rank() && rank.transport().size() == 3,
           "its rank and size");
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank.rank()) continue;
      const Capabilities& can = rank.to(peer).capabilities();
      expect(rank.to(peer).peer() == peer, "a channel's peer");
      const bool is_part = rank.transport().name_to(peer) != rank.transport().name();
      expect(is_part || can.can_answer == subject.offers.answers,
             "answers on every channel of a transport or on none");
      expect(can.segment_bytes % kSegmentAlignment == 0 && can.segment_bytes > 0,
             "a multiple of the alignment");
      expect(can.preferred_segment_bytes <= can.segment_bytes &&
                 can.straight_segment_bytes <= can.segment_bytes,
             "preferences within the limit");
      expect(can.credit_segments >= kMinimumCredit, "the minimum of credit");
    }
  });
}

void one_way(const Subject& subject) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    run_ranks(subject, 2, [seed](Rank& rank) {
      const auto plan = random_plan(seed, rank.segment_bytes(), 100);
      if (rank.rank() == 0) {
        follow_as_sender(rank, 1, plan, 0, 100);
        rank.drain(1);
      } else {
        follow_as_receiver(rank, 0, plan, 0, 100);
      }
      if (dynamic_cast<PrepostedReceives*>(&rank.to(1 - rank.rank())) == nullptr) return;
      if (rank.rank() == 1) {
        follow_as_sender(rank, 0, plan, 0, 100);
        rank.drain(0);
      } else {
        follow_as_teller(rank, 1, plan);
      }
    });
  }
}

void small_segments(const Subject& subject) {
  constexpr Out kOuts[] = {Out::kSlot, Out::kSend, Out::kGathered};
  constexpr In kIns[] = {In::kView, In::kReceive, In::kViewUnaligned};
  run_ranks(subject, 2, [&](Rank& rank) {
    const int peer = 1 - rank.rank();
    for (int i = 0; i < 1000; ++i) {
      const auto bytes = static_cast<std::size_t>(i % 97);
      rank.send_pattern(peer, i, bytes, kOuts[i % 3], i % 5 == 0 ? kMore : kPlain);
      if (i % 5 == 0) continue;  // the segment after a kMore is in flight by now
      if (i % 5 == 1)
        rank.expect_pattern(peer, i - 1, static_cast<std::size_t>((i - 1) % 97), In::kView);
      rank.expect_pattern(peer, i, bytes, kIns[i / 3 % 3]);
      rank.drain(peer);
    }
  });
}

void smallest_segments(const Subject& subject) {
  run_ranks(
      subject, 2,
      [](Rank& rank) {
        const int peer = 1 - rank.rank();
        expect(rank.segment_bytes() == 64, "the segment size that was asked for");
        for (int i = 0; i < 500; ++i) {
          rank.send_pattern(peer, i, 64);
          rank.expect_pattern(peer, i, 64, i % 2 == 0 ? In::kView : In::kReceive);
          rank.drain(peer);
        }
      },
      64);
}

// Two segments in one call are mixed with two single calls, on either end and on channels without
// the combined call. Sometimes a segment before them is held back and must go first.
void two_at_once(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    const std::size_t longest = rank.segment_bytes();
    const std::size_t heads[] = {8, 24, 56, 64, 192};
    const std::size_t lengths[] = {0, 1, 8, 33, 136, 191, 192, 193, 1000, 4095, 4096, 9000};
    Channel& channel = rank.to(peer);
    const auto expect_next = [&](int index, std::size_t bytes, const std::byte* segment) {
      expect_equal({segment, bytes}, pattern(peer, rank.rank(), index, bytes), "one of two");
    };
    for (int i = 0; i < 600; ++i) {
      const bool is_after_another = i % 7 == 3;
      const auto round = static_cast<std::size_t>(i);
      const std::size_t first = heads[round % std::size(heads)];
      const std::size_t next = std::min(longest, lengths[round / 5 % std::size(lengths)]);
      if (is_after_another) rank.send_pattern(peer, 3 * i, 40, Out::kSlot, kMore);
      const Bytes one = pattern(rank.rank(), peer, 3 * i + 1, first);
      const Bytes other = pattern(rank.rank(), peer, 3 * i + 2, next);
      if (i % 4 == 1 || !channel.send_both(one, first, other)) {
        rank.send_pattern(peer, 3 * i + 1, first, Out::kGathered, i % 2 == 0 ? kMore : kPlain);
        rank.send_pattern(peer, 3 * i + 2, next);
      }
      if (is_after_another) rank.expect_pattern(peer, 3 * i, 40);
      Both both;
      const std::byte* alone = nullptr;
      rank.until(
          [&] {
            if (i % 3 != 0) both = channel.view_both(first, next);
            if (both.first == nullptr) alone = channel.view(first);
            return both.first != nullptr || alone != nullptr;
          },
          "one of two segments");
      expect_next(3 * i + 1, first, both.first != nullptr ? both.first : alone);
      if (both.first != nullptr) {
        expect_next(3 * i + 2, next, both.next);
        channel.release_both();
      } else {
        channel.release();
        rank.expect_pattern(peer, 3 * i + 2, next, i % 2 == 0 ? In::kView : In::kReceive);
      }
      rank.drain(peer);
    }
  });
}

void all_to_all(const Subject& subject) {
  for (int size = 2; size <= 5; ++size) {
    run_ranks(subject, size, [](Rank& rank) {
      constexpr int kRounds = 8;
      std::vector<std::vector<Plan>> out;
      std::vector<std::vector<Plan>> in;
      for (int peer = 0; peer < rank.size(); ++peer) {
        const auto seed = [&](int from, int to) {
          return static_cast<unsigned>(100 + from * 10 + to);
        };
        out.push_back(
            random_plan(seed(rank.rank(), peer), rank.segment_bytes(), kRounds * kMinimumCredit));
        in.push_back(
            random_plan(seed(peer, rank.rank()), rank.segment_bytes(), kRounds * kMinimumCredit));
      }
      // Each rank sends its minimum credit on all channels before any rank takes anything.
      for (int round = 0; round < kRounds; ++round) {
        const int from = round * kMinimumCredit;
        for (int peer = 0; peer < rank.size(); ++peer) {
          if (peer == rank.rank()) continue;
          follow_as_sender(rank, peer, out[static_cast<std::size_t>(peer)], from,
                           from + kMinimumCredit);
        }
        for (int peer = rank.size() - 1; peer >= 0; --peer) {
          if (peer == rank.rank()) continue;
          follow_as_receiver(rank, peer, in[static_cast<std::size_t>(peer)], from,
                             from + kMinimumCredit);
        }
      }
      for (int peer = 0; peer < rank.size(); ++peer) {
        if (peer != rank.rank()) rank.drain(peer);
      }
    });
  }
}

void both_ways(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    const std::size_t bytes = rank.segment_bytes();
    constexpr int kSegments = 64;
    int sent = 0;
    int received = 0;
    std::vector<Bytes> data;
    for (int i = 0; i < kSegments; ++i) data.push_back(pattern(rank.rank(), peer, i, bytes));
    Bytes got(bytes);
    rank.until([&] {
      for (bool has_moved = true; has_moved;) {
        has_moved = false;
        while (sent < kSegments && rank.to(peer).send(data[static_cast<std::size_t>(sent)])) ++sent;
        if (received < kSegments && rank.to(peer).receive(got)) {
          expect_equal(got, pattern(peer, rank.rank(), received++, bytes), "the stream");
          has_moved = true;
        }
      }
      return sent == kSegments && received == kSegments && rank.to(peer).is_drained();
    });
  });
}

void huge_segments(const Subject& subject) {
  constexpr std::size_t kHuge = std::size_t{4} << 20;
  run_ranks(
      subject, 2,
      [](Rank& rank) {
        const int peer = 1 - rank.rank();
        const std::size_t bytes = rank.to(peer).capabilities().segment_bytes;
        expect(bytes > 0 && bytes <= kHuge, "segments no longer than was asked for");
        for (int i = 0; i < 6; ++i) {
          const bool is_even = i % 2 == 0;
          rank.send_pattern(peer, i, bytes - (i < 3 ? 0 : 1), is_even ? Out::kSlot : Out::kSend);
          rank.expect_pattern(peer, i, bytes - (i < 3 ? 0 : 1),
                              i % 3 == 0 ? In::kView : In::kReceive);
          rank.drain(peer);
        }
      },
      kHuge);
}

void many_channels(const Subject& subject) {
  run_ranks(subject, 12, [](Rank& rank) {
    for (int peer = 0; peer < rank.size(); ++peer) {
      if (peer == rank.rank()) continue;
      rank.send_pattern(peer, 0, 1000 + static_cast<std::size_t>(peer), Out::kSlot);
      rank.send_pattern(peer, 1, 8);
    }
    for (int peer = rank.size() - 1; peer >= 0; --peer) {
      if (peer == rank.rank()) continue;
      rank.expect_pattern(peer, 0, 1000 + static_cast<std::size_t>(rank.rank()), In::kView);
      rank.expect_pattern(peer, 1, 8);
    }
    for (int peer = 0; peer < rank.size(); ++peer) {
      if (peer != rank.rank()) rank.drain(peer);
    }
    rank.meet("all to all is done");
  });
}

void unaligned_memory(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    for (const std::size_t offset : {1u, 3u, 63u}) {
      const std::size_t bytes = rank.segment_bytes() - 7;
      Bytes memory(offset, std::byte{0});
      const Bytes data = pattern(rank.rank(), peer, static_cast<int>(offset), bytes);
      memory.insert(memory.end(), data.begin(), data.end());
      rank.send(peer, std::span(memory).subspan(offset));
      Bytes into(bytes + offset + 1, std::byte{0xAB});
      rank.until([&] { return rank.to(peer).receive(std::span(into).subspan(offset, bytes)); });
      expect_equal(std::span(into).subspan(offset, bytes),
                   pattern(peer, rank.rank(), static_cast<int>(offset), bytes), "unaligned");
      expect(into.back() == std::byte{0xAB} && into[offset - 1] == std::byte{0xAB},
             "nothing outside the span");
      rank.drain(peer);
    }
  });
}

void empty_segments(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    if (rank.rank() == 1) {
      expect(rank.to(0).view(0) == nullptr, "nothing to view before it is sent");
      rank.meet("nothing was sent yet");
      rank.receive(0, 0, In::kView);
      rank.receive(0, 0, In::kReceive);
      rank.expect_pattern(0, 0, 5);
    } else {
      rank.meet("nothing was sent yet");
      rank.send(peer, {}, Out::kSlot);
      rank.send(peer, {}, Out::kSend);
      rank.send_pattern(peer, 0, 5);
      rank.drain(peer);
    }
  });
}

void drained_memory(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    Bytes buffer(rank.segment_bytes());
    for (int i = 0; i < 50; ++i) {
      if (rank.rank() == 0) {
        const Bytes data = pattern(0, 1, i, buffer.size());
        std::copy(data.begin(), data.end(), buffer.begin());
        rank.send(1, buffer);
        // With zero copy the channel is drained only when the peer has taken the segment.
        rank.until([&] { return rank.to(1).is_drained(); });
        std::fill(buffer.begin(), buffer.end(), std::byte{0xEE});
      } else {
        rank.expect_pattern(peer, i, buffer.size(), i % 2 == 0 ? In::kView : In::kReceive);
      }
    }
  });
}

void counts(const Subject& subject) {
  run_ranks(subject, 3, [](Rank& rank) {
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank.rank()) continue;
      rank.send_pattern(peer, 0, 10, Out::kSlot);
      rank.send_pattern(peer, 1, 0);
      rank.send_pattern(peer, 2, 1001);
    }
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank.rank()) continue;
      rank.expect_pattern(peer, 0, 10, In::kReceive);
      rank.expect_pattern(peer, 1, 0, In::kView);
      rank.expect_pattern(peer, 2, 1001, In::kView);
      const ChannelStatistics& counts = rank.to(peer).statistics();
      expect(counts.bytes_sent == 1011 && counts.segments_sent == 3, "what was sent");
      expect(counts.bytes_received == 1011 && counts.segments_received == 3, "what was received");
    }
    for (int peer = 0; peer < 3; ++peer) {
      if (peer != rank.rank()) rank.drain(peer);
    }
    rank.meet("counted");
  });
}

void wrong_calls(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    Channel& channel = rank.to(peer);
    const std::size_t too_long = channel.capabilities().segment_bytes + 1;
    expect(is_refused([&] { rank.transport().channel(rank.rank()); }), "no channel to oneself");
    expect(is_refused([&] { rank.transport().channel(2); }), "no channel beyond the last rank");
    expect(is_refused([&] { rank.transport().channel(-1); }), "no channel below the first");
    expect(is_refused([&] { channel.reserve(too_long); }), "no slot that is too long");
    expect(is_refused([&] { channel.commit(); }), "no commit without a slot");
    expect(is_refused([&] { channel.release(); }), "no release without a view");
    rank.meet("refused");
  });
}

}  // namespace kolo::inline v0::conformance
