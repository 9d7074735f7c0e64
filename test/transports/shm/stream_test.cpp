// The stream of segments: order, contents, answers, credit and sleep.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <set>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// Both ends compute the n-th segment of each direction from the seed, as ranks do from a schedule.
struct Segment {
  std::size_t bytes = 0;
  bool is_answered = false;
  std::byte fill{};

  std::byte answer_fill() const { return fill ^ std::byte{0xff}; }
};

class Script {
 public:
  Script(unsigned seed, std::size_t longest) : random_(seed), longest_(longest) {}

  Segment next() {
    static constexpr std::array<std::size_t, 12> sizes = {0,  1,  7,  8,  16, 40,
                                                          48, 55, 56, 57, 64, 4097};
    const std::size_t pick = random_() % (sizes.size() + 2);
    Segment segment;
    segment.bytes = std::min(longest_, pick < sizes.size() ? sizes[pick] : longest_ - pick % 2);
    segment.is_answered = random_() % 5 == 0;
    segment.fill = static_cast<std::byte>(random_());
    return segment;
  }

 private:
  std::mt19937 random_;
  std::size_t longest_;
};

bool is_filled(const std::byte* data, std::size_t bytes, std::byte with) {
  return std::all_of(data, data + bytes, [with](std::byte byte) { return byte == with; });
}

// One rank's half of a random exchange in both directions. It tries all steps in any order until
// all segments are sent and received.
class Talker {
 public:
  Talker(Channel& channel, unsigned own_seed, unsigned peer_seed, int segments)
      : channel_(channel),
        random_(own_seed * 7919 + 1),
        out_(own_seed, channel.capabilities().segment_bytes),
        in_(peer_seed, channel.capabilities().segment_bytes),
        to_send_(segments),
        to_receive_(segments),
        next_out_(out_.next()),
        next_in_(in_.next()) {}

  // Makes every step that is possible now; returns true when everything is done.
  bool step() {
    for (bool has_moved = true; has_moved;) {
      has_moved = send();
      has_moved |= receive();
      has_moved |= read_answer();
    }
    return to_send_ == 0 && to_receive_ == 0 && unanswered_.empty();
  }

 private:
  bool send() {
    if (to_send_ == 0) return false;
    const bool is_last = to_send_ == 1;
    const unsigned flags = (next_out_.is_answered ? kAnswered : kPlain) |
                           (!is_last && random_() % 3 == 0 ? kMore : kPlain);
    if (random_() % 2 == 0) {
      const std::vector<std::byte> data(next_out_.bytes, next_out_.fill);
      if (!channel_.send(data, flags)) return false;
    } else {
      std::byte* slot = channel_.reserve(next_out_.bytes);
      if (slot == nullptr) return false;
      expect(reinterpret_cast<std::uintptr_t>(slot) % kSegmentAlignment == 0);
      std::fill_n(slot, next_out_.bytes, next_out_.fill);
      channel_.commit(flags);
    }
    if (next_out_.is_answered) unanswered_.push_back(next_out_);
    next_out_ = out_.next();
    --to_send_;
    return true;
  }

  bool receive() {
    if (to_receive_ == 0) return false;
    const Segment expected = next_in_;
    if (expected.is_answered) {
      std::byte* segment = channel_.view_to_answer(expected.bytes);
      if (segment == nullptr) return false;
      expect(is_filled(segment, expected.bytes, expected.fill));
      std::fill_n(segment, expected.bytes, expected.answer_fill());
      channel_.answer();
    } else if (random_() % 2 == 0) {
      const std::byte* segment = channel_.view(expected.bytes);
      if (segment == nullptr) return false;
      expect(reinterpret_cast<std::uintptr_t>(segment) % kSegmentAlignment == 0);
      expect(is_filled(segment, expected.bytes, expected.fill));
      channel_.release();
    } else {
      std::vector<std::byte> into(expected.bytes);
      if (!channel_.receive(into)) return false;
      expect(is_filled(into.data(), into.size(), expected.fill));
    }
    next_in_ = in_.next();
    --to_receive_;
    return true;
  }

  bool read_answer() {
    if (unanswered_.empty()) return false;
    const Segment asked = unanswered_.front();
    const std::byte* answer = channel_.view_answer(asked.bytes);
    if (answer == nullptr) return false;
    expect(is_filled(answer, asked.bytes, asked.answer_fill()));
    channel_.release_answer();
    unanswered_.pop_front();
    return true;
  }

  Channel& channel_;
  std::mt19937 random_;
  Script out_;
  Script in_;
  int to_send_;
  int to_receive_;
  Segment next_out_;
  Segment next_in_;
  std::deque<Segment> unanswered_;
};

void talk_all_to_all(Transport& transport, int segments, unsigned seed, Wait wait) {
  std::vector<Talker> talkers;
  const auto seed_of = [&](int from, int to) {
    return seed + static_cast<unsigned>(from * transport.size() + to);
  };
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    talkers.emplace_back(transport.channel(peer), seed_of(transport.rank(), peer),
                         seed_of(peer, transport.rank()), segments);
  }
  const auto all_done = [&] {
    bool is_done = true;
    for (Talker& talker : talkers) is_done &= talker.step();
    return is_done;
  };
  wait_until(transport, all_done, "random segments, seed " + std::to_string(seed), wait);
}

}  // namespace

TEST_CASE("random segments keep their order, contents and answers") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  const std::size_t segment_bytes =
      GENERATE(std::size_t{64}, std::size_t{64 * 1024}, std::size_t{512 * 1024});
  const int segments = segment_bytes > 100'000 ? 300 : 3000;
  run_connected(
      2, [&](Transport& transport) { talk_all_to_all(transport, segments, seed, Wait::kSpin); },
      {segment_bytes, true});
}

TEST_CASE(
    "no rank sleeps through a segment, a credit or an answer, with or without remote barriers") {
  const unsigned seed = std::random_device{}();
  const bool has_remote_barriers = GENERATE(true, false);
  CAPTURE(seed, has_remote_barriers);
  run_connected(2,
                [&](Transport& transport) { talk_all_to_all(transport, 5000, seed, Wait::kSleep); },
                {4096, has_remote_barriers});
}

TEST_CASE("eight ranks on few cores exchange data with all others, asleep while they wait") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  run_connected(8,
                [&](Transport& transport) { talk_all_to_all(transport, 200, seed, Wait::kSleep); },
                {4096});
}

TEST_CASE("a strictly alternating exchange wakes the sleeping rank every time") {
  run_connected(2, [](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    std::uint64_t value = 0;
    for (std::uint64_t turn = 0; turn < 3000; ++turn) {
      if (turn % 2 == static_cast<std::uint64_t>(transport.rank())) {
        expect(channel.send(std::as_bytes(std::span(&turn, 1))));
        continue;
      }
      wait_until(
          transport, [&] { return channel.receive(std::as_writable_bytes(std::span(&value, 1))); },
          "turn " + std::to_string(turn), Wait::kSleep);
      expect(value == turn);
    }
  });
}

TEST_CASE("the promised credit holds for any mix of lengths, and is returned") {
  run_connected(2, [](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    const std::size_t full = channel.capabilities().segment_bytes;
    const std::array<std::size_t, 4> mix = {full, 8, full - 1, full};
    for (int round = 0; round < 50; ++round) {
      for (const std::size_t bytes : mix) {
        expect(channel.reserve(bytes) != nullptr);
        channel.commit(round % 2 == 0 ? kPlain : kAnswered);
      }
      for (const std::size_t bytes : mix) {
        wait_until(
            transport, [&] { return channel.view(bytes) != nullptr; }, "a segment of the mix");
        round % 2 == 0 ? channel.release() : channel.answer();
      }
      for (const std::size_t bytes : mix) {
        if (round % 2 == 0) continue;
        wait_until(
            transport, [&] { return channel.view_answer(bytes) != nullptr; },
            "an answer of the mix");
        channel.release_answer();
      }
    }
    expect(channel.statistics().segments_sent == 200);
    expect(channel.statistics().segments_received == 200);
    expect(channel.statistics().bytes_sent == channel.statistics().bytes_received);
    expect(channel.statistics().bytes_sent == 75 * (3 * full + 7));
  });
}

TEST_CASE(
    "a rank that exchanges segments writes into the slot that it read last, and keeps its credit") {
  run_connected(2, [](Transport& transport) {
    constexpr std::size_t bytes = 1000;
    Channel& channel = transport.channel(1 - transport.rank());
    const auto send = [&] {
      std::byte* slot = channel.reserve(bytes);
      if (slot != nullptr) channel.commit();
      return slot;
    };
    const auto read = [&] {
      const std::byte* slot = nullptr;
      wait_until(
          transport, [&] { return (slot = channel.view(bytes)) != nullptr; }, "a segment");
      channel.release();
      return slot;
    };
    const std::byte* last = nullptr;
    for (int turn = 0; turn < 500; ++turn) {
      const std::byte* slot = nullptr;
      wait_until(
          transport, [&] { return (slot = send()) != nullptr; }, "credit");
      expect(last == nullptr || slot == last);
      last = read();
    }
    // After the peer has read, each side has exactly its initial credit again.
    const int credit = channel.capabilities().credit_segments;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < credit; ++i) {
        wait_until(
            transport, [&] { return send() != nullptr; }, "credit");
      }
      for (int i = 0; i < credit; ++i) read();
    }
  });
}

TEST_CASE("a stream in one direction stays within its slots") {
  run_connected(2, [](Transport& transport) {
    constexpr std::size_t bytes = 1000;
    Channel& channel = transport.channel(1 - transport.rank());
    std::set<const std::byte*> slots;
    for (int turn = 0; turn < 500; ++turn) {
      const std::byte* slot = nullptr;
      wait_until(
          transport,
          [&] {
            slot = transport.rank() == 0 ? channel.reserve(bytes) : channel.view(bytes);
            return slot != nullptr;
          },
          "a slot");
      slots.insert(slot);
      transport.rank() == 0 ? channel.commit() : channel.release();
    }
    expect(slots.size() <= static_cast<std::size_t>(channel.capabilities().credit_segments));
  });
}

TEST_CASE("a segment held back by kMore is sent when the caller waits") {
  run_connected(2, [](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    const std::uint64_t sent = 42;
    std::uint64_t got = 0;
    expect(channel.send(std::as_bytes(std::span(&sent, 1)), kMore));
    expect(!(channel.is_drained()));
    wait_until(
        transport, [&] { return channel.receive(std::as_writable_bytes(std::span(&got, 1))); },
        "what was held back", Wait::kSleep);
    expect(got == 42);
    transport.progress();
    expect(channel.is_drained());
  });
}

TEST_CASE("two instances between the same ranks do not mix") {
  run_ranks(2, [](int rank, const std::shared_ptr<Store>& store) {
    const auto first = make_shm(request_for(rank, 2, prefixed(store, "first/")));
    const auto second = make_shm(request_for(rank, 2, prefixed(store, "second/")));
    talk_all_to_all(*first, 500, 1, Wait::kSpin);
    talk_all_to_all(*second, 500, 2, Wait::kSpin);
  });
}
