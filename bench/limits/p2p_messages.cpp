// Floors of messages between two ranks, as kolo-bench p2p measures them (pass.h): the messages of a
// window differ and lie one after the other.
//
// A window, one way or both, is a number of bytes that move at once, however they are cut. So its
// floor is that of a broadcast or an all-gather.
//
// Latency (one message after the other, there and back) is emulated here in the ways of
// shm_one_hop.cpp: in one line, through slots, or from mapped memory, where each core copies a
// half.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "bench/limits/limits.h"
#include "bench/limits/shm_slots.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/pattern.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kShortPiece = 8 * 1024;
constexpr std::size_t kMostBytes = std::size_t{256}
                                   << 20;  // of a window, which is in memory three times

class PingPong {
 public:
  PingPong(std::size_t bytes, std::size_t window)
      : bytes_(bytes), window_(window), given_(bytes * window), taken_{given_, given_} {}

  void prepare(int rank) {
    if (rank != 0) return;
    if (pattern_.salt > 0) wrong_ += count_wrong();
    ++pattern_.salt;
    fill(given_.data(), 0, given_.size(), 0, pattern_);
  }

  // Rank 1 sends back what it received.
  template <typename Way>
  void play(int rank, const Way& way) {
    for (std::size_t i = 0; i < window_; ++i) {
      if (rank == 0) way.give(*this, 0, i);
      way.take(*this, rank, i);
      if (rank == 1) way.give(*this, 1, i);
    }
  }

  std::uint64_t wrong() const { return wrong_ + count_wrong(); }

  struct InOneLine {
    static void give(PingPong& ping_pong, int rank, std::size_t i) {
      const std::uint64_t message = ++ping_pong.sides_[rank].given;
      FullLine& line = ping_pong.sides_[rank].lines[message % 2];
      std::memcpy(line.bytes, ping_pong.source(rank, i), ping_pong.bytes_);
      line.sequence.store(message, std::memory_order_release);
    }
    static void take(PingPong& ping_pong, int rank, std::size_t i) {
      const std::uint64_t message = ++ping_pong.sides_[rank].got;
      const FullLine& line = ping_pong.sides_[1 - rank].lines[message % 2];
      wait_for(line.sequence, message);
      std::memcpy(ping_pong.place(rank, i), line.bytes, ping_pong.bytes_);
    }
  };

  // In pieces of kPiece bytes, so that the receiver copies one while the sender copies the next.
  template <std::size_t kPiece>
  struct ThroughSlots {
    static void give(PingPong& ping_pong, int rank, std::size_t i) {
      Side& mine = ping_pong.sides_[rank];
      for (std::size_t first = 0; first < ping_pong.bytes_; first += kPiece) {
        const std::uint64_t segment = ++mine.given;
        if (segment > kSlots) ping_pong.sides_[1 - rank].taken.wait_for(segment - kSlots);
        std::memcpy(mine.slots[segment % kSlots].bytes, ping_pong.source(rank, i) + first,
                    std::min(kPiece, ping_pong.bytes_ - first));
        mine.posted.publish(segment);
      }
    }
    static void take(PingPong& ping_pong, int rank, std::size_t i) {
      Side& mine = ping_pong.sides_[rank];
      const Side& theirs = ping_pong.sides_[1 - rank];
      for (std::size_t first = 0; first < ping_pong.bytes_; first += kPiece) {
        const std::uint64_t segment = ++mine.got;
        theirs.posted.wait_for(segment);
        std::memcpy(ping_pong.place(rank, i) + first, theirs.slots[segment % kSlots].bytes,
                    std::min(kPiece, ping_pong.bytes_ - first));
        mine.taken.publish(segment);
      }
    }
  };

  // The sender copies the second half itself. The answer tells it that its memory is no longer
  // read.
  struct CopiedOnce {
    static void give(PingPong& ping_pong, int rank, std::size_t i) {
      Side& mine = ping_pong.sides_[rank];
      mine.posted.publish(++mine.given);
      const std::size_t half = ping_pong.bytes_ / 2;
      std::memcpy(ping_pong.place(1 - rank, i) + half, ping_pong.source(rank, i) + half,
                  ping_pong.bytes_ - half);
      mine.taken.publish(mine.given);
    }
    static void take(PingPong& ping_pong, int rank, std::size_t i) {
      const Side& theirs = ping_pong.sides_[1 - rank];
      const std::uint64_t message = ++ping_pong.sides_[rank].got;
      theirs.posted.wait_for(message);
      std::memcpy(ping_pong.place(rank, i), ping_pong.source(1 - rank, i), ping_pong.bytes_ / 2);
      theirs.taken.wait_for(message);
    }
  };

 private:
  struct Side {
    FullLine lines[2];  // used in turn
    Slot slots[kSlots];
    Flag posted;              // segments, or messages, that this rank has sent
    Flag taken;               // of the other's; copied once: own, with the second half copied
    std::uint64_t given = 0;  // copy of posted, and what this rank has received:
    std::uint64_t got = 0;    // each private to its rank
  };

  const std::byte* source(int giver, std::size_t i) const {
    return (giver == 0 ? given_.data() : taken_[1].data()) + i * bytes_;
  }
  std::byte* place(int taker, std::size_t i) {
    return taken_[static_cast<std::size_t>(taker)].data() + i * bytes_;
  }

  std::uint64_t count_wrong() const {
    return count_wrong_copies(taken_[0].data(), 0, taken_[0].size(), 0, pattern_);
  }

  std::size_t bytes_;
  std::size_t window_;
  std::vector<std::byte> given_;
  std::array<std::vector<std::byte>, 2> taken_;
  Pattern pattern_{ElementType::kUint8, ReduceOp::kSum, 1, 0};
  std::uint64_t wrong_ = 0;
  Side sides_[2];
};

template <typename Way>
MessagesFloor by(const MessagesRequest& request, double seconds) {
  const auto ping_pong = std::make_unique<PingPong>(request.bytes, request.window);
  const Round round{[&](int rank) { ping_pong->prepare(rank); },
                    [&](int rank) { ping_pong->play(rank, Way{}); }};
  const double ways = 2 * static_cast<double>(request.window);
  const double row_us = quantiles(time_for(2, seconds, round)).median;
  return {row_us / ways, ping_pong->wrong()};
}

// The window as a collective, in whole floats: both ranks send, or one does.
FloorRequest window_of(const MessagesRequest& request) {
  const std::size_t bytes = request.bytes * request.window / 8 * 8;
  if (request.kind == P2pKind::kBidirectional) return {Collective::kAllGather, 2, 2 * bytes};
  return {Collective::kBroadcast, 2, bytes};
}

MessagesFloor floor_of(const Row& row) { return {row.time_us.median, row.wrong.value_or(0)}; }

}  // namespace

bool has_floor(const MessagesRequest& request) {
  if (request.bytes > kMostBytes / request.window) return false;
  return request.kind == P2pKind::kLatency ? request.bytes > 0 : has_floor(window_of(request));
}

MessagesFloor shared_memory_floor(const MessagesRequest& request, double seconds) {
  if (request.kind != P2pKind::kLatency)
    return floor_of(shared_memory_floor(window_of(request), seconds));
  if (request.bytes <= kLineBytes) return by<PingPong::InOneLine>(request, seconds);
  const double each = seconds / 3;
  MessagesFloor least{std::numeric_limits<double>::infinity(), 0};
  for (const MessagesFloor& found : {by<PingPong::ThroughSlots<kSlotBytes>>(request, each),
                                     by<PingPong::ThroughSlots<kShortPiece>>(request, each),
                                     by<PingPong::CopiedOnce>(request, each)}) {
    least = {std::min(least.time_us, found.time_us), least.wrong + found.wrong};
  }
  return least;
}

MessagesFloor tcp_floor(const MessagesRequest& request, double seconds) {
  if (request.kind != P2pKind::kLatency) return floor_of(tcp_floor(window_of(request), seconds));
  return tcp_latency_floor(request, seconds);
}

}  // namespace kolo::bench
