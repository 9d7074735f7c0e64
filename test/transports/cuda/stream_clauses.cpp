#include "test/transports/cuda/stream_clauses.h"

#include <array>
#include <random>
#include <utility>
#include <vector>

#include "transports/conformance/ranks.h"

namespace kolo::test {

using conformance::expect;
using conformance::is_refused;

namespace {

constexpr StreamClause kClauses[] = {
#define KOLO_STREAM_CLAUSE(function, size, text) {text, size, function},
#include "test/transports/cuda/stream_clauses.inc"
#undef KOLO_STREAM_CLAUSE
};

void expect_filled(StreamRank& rank, const std::byte* memory, std::size_t bytes, int seed,
                   std::string_view what) {
  expect(rank.is_filled(memory, bytes, seed),
         std::string(what) + ": the right " + std::to_string(bytes) + " bytes");
}

// The text of the std::invalid_argument that the call throws; empty if it throws none.
std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// Both ranks close, and their streams go on.
void close_both(StreamRank& rank) {
  rank.meet();
  rank.quiesce();
  rank.finish();
}

}  // namespace

std::span<const StreamClause> stream_clauses() { return kClauses; }

void reports_capabilities(StreamRank& rank) {
  StreamChannel& stream = rank.stream(rank.peer());
  const Capabilities& can = stream.capabilities();
  expect(can.segment_bytes == kStreamSegment, "slots of the requested length");
  expect(can.credit_segments >= kMinimumCredit, "the minimum of credit");
  expect(!can.can_answer, "no answers");
  expect(stream.can_send(), "memory that is sent directly");
}

void waits_for_credit(StreamRank& rank) {
  constexpr std::size_t kSegments = 100;
  constexpr std::size_t kBytes = 1000;
  std::byte* const data = rank.memory(kSegments * kBytes, rank.rank() == 0 ? 0 : 99);
  rank.begin();
  if (rank.rank() == 0) {
    for (std::size_t i = 0; i < kSegments; ++i) rank.commit(1, data + i * kBytes, kBytes);
    expect(rank.is_waiting(), "a stream that waits for credit");
    rank.meet();
  } else {
    rank.meet();
    for (std::size_t i = 0; i < kSegments; ++i) rank.view(0, data + i * kBytes, kBytes);
  }
  rank.finish();
  rank.end();
  if (rank.rank() == 0) return;
  expect_filled(rank, data, kSegments * kBytes, 0, "what was viewed");
  const ChannelStatistics& counts = rank.channel(0).statistics();
  expect(counts.segments_received == kSegments, "a count of the segments");
  expect(counts.bytes_received == kSegments * kBytes, "a count of the bytes");
}

void views_first(StreamRank& rank) {
  std::byte* const data = rank.memory(8, rank.rank() == 0 ? 3 : 50);
  rank.begin();
  if (rank.rank() == 0) {
    rank.meet();
    rank.commit(1, data, 8);
  } else {
    rank.view(0, data, 8);
    expect(rank.is_waiting(), "a stream that waits for its peer");
    expect_filled(rank, data, 8, 50, "the destination before the segment has come");
    rank.meet();
  }
  rank.finish();
  if (rank.rank() == 1) expect_filled(rank, data, 8, 3, "what was viewed");
  rank.end();
}

void any_length(StreamRank& rank) {
  rank.begin();
  int seed = 0;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, kStreamSegment - 1, kStreamSegment}) {
    std::byte* const data = rank.memory(bytes, rank.rank() == 0 ? ++seed : 99);
    if (rank.rank() == 0) {
      rank.meet();
      rank.commit(1, data, bytes);
    } else {
      rank.view(0, data, bytes);
      expect(rank.is_waiting(), "a stream that waits for its peer");
      rank.meet();
    }
    rank.finish();
    if (rank.rank() == 1) expect_filled(rank, data, bytes, ++seed, "what was viewed");
  }
  rank.end();
}

void sent_directly(StreamRank& rank) {
  rank.begin();
  int seed = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kStreamSegment,
                                  kStreamSegment + 1, std::size_t{50'000}, std::size_t{300'001}}) {
    ++seed;
    std::byte* const data = rank.memory(bytes, rank.rank() == 0 ? seed : 99);
    if (rank.rank() == 0) {
      rank.send(1, {data, bytes});
      rank.send(1, {data, bytes});
      rank.finish();
      continue;
    }
    rank.receive(0, {data, bytes});
    const std::byte* const seen = rank.view_sent(0, bytes);
    rank.finish();
    expect_filled(rank, data, bytes, seed, "what was received");
    expect_filled(rank, seen, bytes, seed, "what was viewed");
    rank.stream(0).release(rank.on());
    rank.finish();
  }
  rank.end();
}

void all_send_first(StreamRank& rank) {
  constexpr std::size_t kBytes = 500'000;
  const int next = (rank.rank() + 1) % 3;
  const int before = (rank.rank() + 2) % 3;
  std::byte* const from = rank.memory(kBytes, rank.rank());
  std::byte* const into = rank.memory(kBytes, 99);
  rank.begin();
  rank.send(next, {from, kBytes});
  rank.receive(before, {into, kBytes});
  rank.finish();
  expect_filled(rank, into, kBytes, before, "what was received");
  rank.end();
}

// A transport may carry memory that its peers cannot open by another method.
void closed_memory_first(StreamRank& rank) {
  constexpr std::size_t kBytes = 200'000;
  std::array<std::byte*, 2> from{};
  std::array<std::byte*, 2> into{};
  for (int i = 0; i < 2; ++i) {
    from[static_cast<std::size_t>(i)] = rank.memory(kBytes, i, StreamRank::Memory::kClosed);
    into[static_cast<std::size_t>(i)] = rank.memory(kBytes, 99);
  }
  std::byte* const short_from = rank.memory(100, 7);
  std::byte* const short_into = rank.memory(100, 99);
  rank.begin();
  for (std::byte* const data : from) rank.send(rank.peer(), {data, kBytes});
  for (std::byte* const data : into) rank.receive(rank.peer(), {data, kBytes});
  rank.commit(rank.peer(), short_from, 100);
  rank.stream(rank.peer()).drain(rank.on());
  rank.view(rank.peer(), short_into, 100);
  rank.finish();
  expect_filled(rank, into[0], kBytes, 0, "the first memory");
  expect_filled(rank, into[1], kBytes, 1, "the second memory");
  expect_filled(rank, short_into, 100, 7, "the segment behind them");
  rank.end();
}

void slots_and_memory(StreamRank& rank) {
  constexpr int kRounds = 40;
  struct Round {
    std::byte* from;
    std::byte* into;
    std::size_t bytes;
  };
  std::vector<Round> rounds;
  for (int i = 0; i < kRounds; ++i) {
    const std::size_t bytes = i % 3 == 1 ? 10'000 : 100;
    rounds.push_back({rank.memory(bytes, i), rank.memory(bytes, 99), bytes});
  }
  rank.begin();
  for (const Round& round : rounds) {
    if (round.bytes > kStreamSegment) {
      rank.send(rank.peer(), {round.from, round.bytes});
      rank.receive(rank.peer(), {round.into, round.bytes});
    } else {
      rank.commit(rank.peer(), round.from, round.bytes);
      rank.view(rank.peer(), round.into, round.bytes);
    }
  }
  rank.finish();
  for (int i = 0; i < kRounds; ++i) {
    const Round& round = rounds[static_cast<std::size_t>(i)];
    expect_filled(rank, round.into, round.bytes, i, "round " + std::to_string(i));
  }
  rank.end();
}

namespace {

struct Message {
  int from, to, seed;
  std::size_t bytes;
  enum class Way { kSlot, kReceive, kViewSent } way;
  bool is_closed;  // its memory
  std::byte* at = nullptr;
};

// All ranks make the same plan.
std::vector<Message> plan_mixture(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&random](std::size_t below) { return random() % below; };
  std::vector<Message> plan;
  for (int i = 0; i < 60; ++i) {
    Message message{};
    message.from = static_cast<int>(pick(3));
    message.to = (message.from + 1 + static_cast<int>(pick(2))) % 3;
    message.seed = i;
    message.way = static_cast<Message::Way>(pick(3));
    const bool is_slot = message.way == Message::Way::kSlot;
    message.bytes = pick(3) == 0 ? pick(100) : pick(is_slot ? kStreamSegment + 1 : 30'000);
    message.is_closed = pick(4) == 0;
    plan.push_back(message);
  }
  return plan;
}

void send_part(StreamRank& rank, const Message& message) {
  if (message.way == Message::Way::kSlot) return rank.commit(message.to, message.at, message.bytes);
  rank.send(message.to, {message.at, message.bytes});
}

void receive_part(StreamRank& rank, const Message& message) {
  switch (message.way) {
    case Message::Way::kSlot:
      return rank.view(message.from, message.at, message.bytes);
    case Message::Way::kReceive:
      return rank.receive(message.from, {message.at, message.bytes});
    case Message::Way::kViewSent:
      rank.copy(message.at, rank.view_sent(message.from, message.bytes), message.bytes);
      rank.stream(message.from).release(rank.on());
  }
}

}  // namespace

void any_mixture(StreamRank& rank) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::vector<Message> plan = plan_mixture(seed);
    for (Message& message : plan) {
      const auto kind = message.is_closed ? StreamRank::Memory::kClosed : StreamRank::Memory::kOpen;
      if (message.from == rank.rank()) message.at = rank.memory(message.bytes, message.seed, kind);
      if (message.to == rank.rank()) message.at = rank.memory(message.bytes, 99);
    }
    rank.begin();
    for (const Message& message : plan) {
      if (message.from == rank.rank()) send_part(rank, message);
      if (message.to == rank.rank()) receive_part(rank, message);
    }
    rank.finish();
    for (const Message& message : plan) {
      if (message.to != rank.rank()) continue;
      expect_filled(rank, message.at, message.bytes, message.seed,
                    "seed " + std::to_string(seed) + ", message " + std::to_string(message.seed));
    }
    rank.end();
  }
}

void drained_memory_changes(StreamRank& rank) {
  constexpr std::size_t kBytes = 100'000;
  std::byte* const data = rank.memory(kBytes, rank.rank() == 0 ? 5 : 99);
  std::byte* const other = rank.memory(kBytes, 77);
  rank.begin();
  if (rank.rank() == 0) {
    rank.stream(1).drain(rank.on());
    rank.finish();  // nothing was sent yet
    rank.send(1, {data, kBytes});
    rank.stream(1).drain(rank.on());
    rank.copy(data, other, kBytes);
  } else {
    rank.receive(0, {data, kBytes});
  }
  rank.finish();
  expect_filled(rank, data, kBytes, rank.rank() == 0 ? 77 : 5, "the memory of the rank");
  rank.end();
}

void destination_unchanged(StreamRank& rank) {
  std::byte* const first = rank.memory(8, rank.rank() == 0 ? 1 : 99);
  std::byte* const second = rank.memory(64, rank.rank() == 0 ? 2 : 40);
  std::byte* const kept = rank.memory(64, 99);
  rank.begin();
  if (rank.rank() == 0) {
    rank.send(1, {first, 8});
    rank.send(1, {second, 64});
  } else {
    rank.receive(0, {first, 8});
    rank.copy(kept, second, 64);  // the stream reads the old content before its receive
    rank.receive(0, {second, 64});
  }
  rank.finish();
  if (rank.rank() == 1) {
    expect_filled(rank, kept, 64, 40, "the content before the receive");
    expect_filled(rank, second, 64, 2, "what was received");
  }
  rank.end();
}

void stream_is_gone(StreamRank& rank) {
  std::byte* const data = rank.memory(16, rank.rank() == 0 ? 6 : 99);
  if (rank.rank() == 0) {
    rank.begin();
    rank.meet();
    rank.commit(1, data, 8);
    rank.commit(1, data + 8, 8);
  } else {
    rank.begin();
    rank.view(0, data, 8);
    rank.end();
    rank.change_stream();
    rank.begin();
    rank.view(0, data + 8, 8);
    expect(rank.is_waiting(), "a new stream that waits for its peer");
    rank.meet();
  }
  rank.finish();
  if (rank.rank() == 1) expect_filled(rank, data, 16, 6, "what was viewed");
  rank.end();
}

namespace {

void call_wrongly(StreamRank& rank, const std::byte* data) {
  StreamChannel& out = rank.stream(1);
  const cuda::Stream own = rank.on();
  expect(is_refused([&] { out.reserve(own, 8); }), "no slot before begin()");
  rank.begin();
  const cuda::Stream other = rank.make_stream();
  expect(is_refused([&] { out.begin(own); }), "no begin() in an open batch");
  expect(is_refused([&] { out.reserve(other, 8); }), "no slot on another stream");
  expect(is_refused([&] { out.commit(own, kPlain); }), "no commit without a slot");
  expect(is_refused([&] { out.release(own); }), "no release without a view");
  expect(is_refused([&] { out.reserve(own, kStreamSegment + 1); }), "no slot that is too long");
  expect(is_refused([&] { out.view(own, kStreamSegment + 1); }), "no view that is too long");
  std::byte* slot = nullptr;
  rank.until([&] { return (slot = out.reserve(own, 8)) != nullptr; }, "a slot");
  expect(is_refused([&] { out.reserve(own, 8); }), "no second slot");
  expect(is_refused([&] { out.send(own, {}, kPlain); }), "no send with a reserved slot");
  expect(is_refused([&] { out.commit(own, kAnswered); }), "no answered segment");
  rank.copy(slot, data, 8);
  out.commit(own, kPlain);
  std::byte on_host[8] = {};
  for (const std::string& refused : {refusal_of([&] { out.send(own, on_host, kPlain); }),
                                     refusal_of([&] { out.receive(own, on_host, kPlain); })}) {
    expect(refused.find("host memory that no device reaches") != std::string::npos,
           "host memory to be refused, not '" + refused + "'");
  }
}

}  // namespace

void wrong_stream_calls(StreamRank& rank) {
  std::byte* const data = rank.memory(8, rank.rank() == 0 ? 4 : 99);
  if (rank.rank() == 0) {
    call_wrongly(rank, data);
  } else {
    rank.begin();
    rank.view(0, data, 8);
  }
  rank.finish();
  if (rank.rank() == 1) expect_filled(rank, data, 8, 4, "the segment between the wrong calls");
  rank.end();
}

void peer_has_closed(StreamRank& rank) {
  std::byte* const data = rank.memory(8, 0);
  rank.begin();
  if (rank.rank() == 1) {
    rank.meet();
    return rank.quiesce();
  }
  rank.view(1, data, 8);
  rank.end();
  rank.meet();
  const Error error = rank.error_of_progress();
  expect(error.code() == ErrorCode::kPeerLost && error.peer() == 1,
         "the loss of rank 1, not: " + std::string(error.what()));
  expect(std::string(error.what()).find("rank 1") != std::string::npos,
         "rank 1 in the text, not: " + std::string(error.what()));
  rank.quiesce();
  rank.finish();
  const auto closed = error_of([&] { rank.begin(); });
  expect(closed && closed->code() == ErrorCode::kAborted, "begin() to be refused after quiesce()");
}

void arrives_after_end(StreamRank& rank) {
  std::byte* const first = rank.memory(100, rank.rank() == 0 ? 1 : 99);
  std::byte* const second = rank.memory(4000, rank.rank() == 0 ? 2 : 99);
  rank.begin();
  if (rank.rank() == 0) {
    rank.commit(1, first, 100);
    rank.commit(1, second, 4000);
    rank.end();
    return rank.drop_transport();
  }
  rank.view(0, first, 100);
  rank.view(0, second, 4000);
  rank.finish();
  expect_filled(rank, first, 100, 1, "the first segment");
  expect_filled(rank, second, 4000, 2, "the second segment");
  rank.end();
  rank.drop_transport();
}

void closes_unused(StreamRank& rank) { close_both(rank); }

void closes_begun(StreamRank& rank) {
  if (rank.rank() == 0) rank.begin();
  close_both(rank);
}

void closes_reserved(StreamRank& rank) {
  if (rank.rank() == 0) {
    rank.begin();
    rank.stream(1).reserve(rank.on(), 8);
  }
  close_both(rank);
}

void closes_unread(StreamRank& rank) {
  std::byte* const data = rank.memory(64, 1);
  if (rank.rank() == 0) {
    rank.begin();
    for (int i = 0; i < 100; ++i) rank.commit(1, data, 64);
  }
  close_both(rank);
}

void closes_waiting(StreamRank& rank) {
  if (rank.rank() == 0) {
    rank.begin();
    rank.stream(1).view(rank.on(), 8);
  }
  close_both(rank);
}

void closes_undrained(StreamRank& rank) {
  constexpr std::size_t kBytes = 500'000;
  std::byte* const data = rank.memory(kBytes, 1);
  if (rank.rank() == 0) {
    rank.begin();
    rank.send(1, {data, kBytes});
    rank.stream(1).drain(rank.on());
    rank.end();
  }
  close_both(rank);
}

void closes_after_receive(StreamRank& rank) {
  constexpr std::size_t kBytes = 500'000;
  std::byte* const data = rank.memory(kBytes, 1);
  rank.begin();
  if (rank.rank() == 1) {
    rank.send(0, {data, kBytes});
  } else {
    rank.receive(1, {data, kBytes});
    rank.end();
  }
  close_both(rank);
}

}  // namespace kolo::test
