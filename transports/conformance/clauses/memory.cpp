// Clauses on allocated memory: segments sent from it have the same content and order as from any
// other memory, whatever access the peer has to it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/conformance/ranks.h"

namespace kolo::inline v0::conformance {

namespace {

void fill(std::byte* memory, const Bytes& bytes) { std::copy(bytes.begin(), bytes.end(), memory); }

void send(Rank& rank, int peer, std::span<const std::byte> data, unsigned flags) {
  rank.until([&] { return rank.to(peer).send(data, flags); }, "credit");
}

// A view need not be aligned here: it may be the sender's own memory.
void expect_pattern(Rank& rank, int peer, int index, std::size_t bytes, In in) {
  if (in != In::kView) return rank.expect_pattern(peer, index, bytes, in);
  const std::byte* segment = nullptr;
  rank.until([&] { return (segment = rank.to(peer).view(bytes)) != nullptr; }, "a segment");
  expect_equal({segment, bytes}, pattern(peer, rank.rank(), index, bytes), "a segment");
  rank.to(peer).release();
}

Bytes inverted(Bytes bytes) {
  for (auto& byte : bytes) byte = ~byte;
  return bytes;
}

// A segment between two ranks, with the same parameters on both.
struct Outgoing {
  int peer;
  int index;
  std::span<std::byte> data;  // filled with its pattern
  unsigned flags;
  In in;  // how the peer takes it
};

// Calls `body(outgoing)` for segments of many sizes, in allocated and in plain memory, at 64
// alignments, with both flags, and for all ways to receive.
template <typename Body>
void for_memory_of_every_kind(Rank& rank, const Body& body) {
  const std::size_t longest = rank.segment_bytes();
  const std::size_t lengths[] = {0, 1, 56, 4095, 4096, 8191, 8192, 8193, longest - 1, longest};
  constexpr In kIns[] = {In::kReceive, In::kView, In::kReceiveCold};
  const auto allocated = rank.transport().allocate(longest + 64);
  Bytes plain(longest + 64);
  for (int i = 0; i < 480; ++i) {
    std::byte* const memory = (i / 10 % 2 == 0 ? allocated.get() : plain.data()) + i % 64;
    const Outgoing out{1 - rank.rank(),
                       i,
                       {memory, std::min(longest, lengths[i % 10])},
                       i / 20 % 2 == 0 ? kPlain : kReceived,
                       kIns[i / 40 % 3]};
    fill(memory, pattern(rank.rank(), out.peer, i, out.data.size()));
    body(out);
  }
}

}  // namespace

void allocated_memory(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const auto memory = rank.transport().allocate(100'001);
    const auto nothing = rank.transport().allocate(0);
    expect(memory != nullptr && nothing != nullptr, "there is memory");
    expect(reinterpret_cast<std::uintptr_t>(memory.get()) % 4096 == 0, "it begins a page");
    expect(std::all_of(memory.get(), memory.get() + 100'001,
                       [](std::byte byte) { return byte == std::byte{0}; }),
           "it is zero");
    rank.meet("memory is there");
    rank.drop_transport();
    memory[100'000] = std::byte{1};
  });
}

void from_allocated_memory(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    for_memory_of_every_kind(rank, [&](const Outgoing& out) {
      send(rank, out.peer, out.data, out.flags);
      expect_pattern(rank, out.peer, out.index, out.data.size(), out.in);
      rank.drain(out.peer);
      expect_equal(out.data, pattern(rank.rank(), out.peer, out.index, out.data.size()),
                   "the sent data, after sending");
    });
  });
}

void copied_segments(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    for_memory_of_every_kind(rank, [&](const Outgoing& out) {
      if (out.index % 7 == 0) {  // mixed with segments sent in place
        send(rank, out.peer, out.data, out.flags);
      } else {
        rank.until([&] { return rank.to(out.peer).send_copy(out.data, out.flags); }, "credit");
        std::ranges::fill(out.data, std::byte{0xee});
      }
      expect_pattern(rank, out.peer, out.index, out.data.size(), out.in);
      rank.drain(out.peer);
    });
  });
}

void many_from_allocated_memory(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    constexpr int kSegments = 200;
    const std::size_t bytes = std::min<std::size_t>(rank.segment_bytes(), 16 * 1024);
    const auto memory = rank.transport().allocate(kSegments * bytes);
    for (int i = 0; i < kSegments; ++i) {
      fill(memory.get() + static_cast<std::size_t>(i) * bytes,
           pattern(rank.rank(), peer, i, bytes));
    }
    int sent = 0;
    int received = 0;
    Bytes into(bytes);
    const auto send_next = [&] {
      const std::byte* const next = memory.get() + static_cast<std::size_t>(sent) * bytes;
      return rank.to(peer).send({next, bytes}, kPlain);
    };
    rank.until(
        [&] {
          // Do everything that is possible now: pending work left undone does not wake the rank.
          while (sent < kSegments && send_next()) ++sent;
          while (received < kSegments && rank.to(peer).receive(into)) {
            expect_equal(into, pattern(peer, rank.rank(), received, bytes), "a segment");
            ++received;
          }
          return sent == kSegments && received == kSegments && rank.to(peer).is_drained();
        },
        "all segments");
  });
}

void lent_segments(const Subject& subject) {
  run_ranks(subject, 2, [](Rank& rank) {
    const int peer = 1 - rank.rank();
    const std::size_t longest = rank.segment_bytes();
    const std::size_t bytes[] = {8, 8191, 8192, longest};
    const auto memory = rank.transport().allocate(longest);
    for (int i = 0; i < 100; ++i) {
      const std::size_t length = std::min(longest, bytes[i % 4]);
      if (rank.rank() == 0) {
        fill(memory.get(), pattern(0, peer, i, length));
        send(rank, peer, {memory.get(), length}, kAnswered | kLent);
        const std::byte* answer = nullptr;
        rank.until([&] { return (answer = rank.to(peer).view_answer(length)) != nullptr; },
                   "an answer");
        expect_equal({answer, length}, inverted(pattern(0, peer, i, length)), "the answer");
        rank.to(peer).release_answer();
      } else {
        std::byte* segment = nullptr;
        rank.until([&] { return (segment = rank.to(peer).view_to_answer(length)) != nullptr; },
                   "a question");
        const Bytes question(segment, segment + length);
        expect_equal(question, pattern(peer, rank.rank(), i, length), "the question");
        fill(segment, inverted(question));
        rank.to(peer).answer();
      }
    }
  });
}

void memory_comes_and_goes(const Subject& subject) {
  run_ranks(subject, 3, [](Rank& rank) {
    const int next = (rank.rank() + 1) % 3;
    const int previous = (rank.rank() + 2) % 3;
    const std::size_t bytes = std::min<std::size_t>(rank.segment_bytes(), 20'000);
    for (int i = 0; i < 40; ++i) {
      const auto memory = rank.transport().allocate(bytes + static_cast<std::size_t>(i) * 5000);
      fill(memory.get(), pattern(rank.rank(), next, i, bytes));
      send(rank, next, {memory.get(), bytes}, kPlain);
      rank.expect_pattern(previous, i, bytes, i % 2 == 0 ? In::kReceive : In::kView);
      rank.drain(next);
    }
  });
}

}  // namespace kolo::inline v0::conformance
