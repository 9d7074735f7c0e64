// Fixed cost of an operation: 8 bytes between two ranks that one thread runs alternately, and a job
// of one rank. The executor also writes and compares the call header, which the hand-written loop
// does not have.
#include <array>
#include <chrono>
#include <functional>
#include <stdexcept>

#include "bench/interpreter/channels.h"
#include "bench/interpreter/interpreter.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/statistics.h"
#include "collectives/algorithms/ring.h"

namespace kolo::bench {
namespace {

constexpr double kMostFixedNs = 150;
constexpr std::size_t kCount = 2;

using Data = std::array<float, kCount>;

// Median nanoseconds of one call, by hand and interpreted, measured in turn.
struct Pair {
  double by_hand = 0;
  double interpreted = 0;
};

double nanoseconds_of(const std::function<void()>& work, int repeats) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) work();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / repeats;
}

Pair in_turn(bool is_quick, const std::function<void()>& by_hand,
             const std::function<void()>& interpreted) {
  const int rounds = is_quick ? 2 : 1000;
  const int repeats = is_quick ? 2 : 500;
  std::vector<double> hand, interpreter;
  for (int round = 0; round < rounds; ++round) {
    hand.push_back(nanoseconds_of(by_hand, repeats));
    interpreter.push_back(nanoseconds_of(interpreted, repeats));
  }
  return {quantile(hand, 0.5), quantile(interpreter, 0.5)};
}

InterpreterRow row_of(const std::string& what, const Pair& pair, int ranks) {
  const double by_hand = pair.by_hand / ranks;
  const double interpreted = pair.interpreted / ranks;
  return {what, "8", by_hand, interpreted, "ns", interpreted - by_hand, "ns more", kMostFixedNs};
}

void require(const Data& out, float expected) {
  for (const float value : out) {
    if (value != expected) throw std::runtime_error("a sum of 8 bytes is wrong");
  }
}

// The ring of two ranks with one element each: send, reduce and send, receive.
class Exchange {
 public:
  void run_by_hand() {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      static_cast<void>(to_other(rank).send(std::as_bytes(std::span(&in_[rank][1 - rank], 1))));
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::byte* theirs = to_other(rank).view(sizeof(float));
      std::byte* slot = to_other(rank).reserve(sizeof(float));
      kernel_(slot, &out_[rank][rank], &in_[rank][rank], theirs, 1, 1);
      to_other(rank).commit();
      to_other(rank).release();
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      static_cast<void>(
          to_other(rank).receive(std::as_writable_bytes(std::span(&out_[rank][1 - rank], 1))));
    }
  }

  void run_interpreted() {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      executors_[rank].start(binding_of(in_[rank].data(), out_[rank].data(), kCount));
    }
    bool is_done[2] = {false, false};
    while (!is_done[0] || !is_done[1]) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        if (!is_done[rank]) is_done[rank] = executors_[rank].advance();
      }
    }
  }

  void require_sums() {
    for (Data& out : out_) {
      require(out, 3);
      out.fill(0);
    }
  }

 private:
  Channel& to_other(std::size_t rank) { return *channels_[rank][1 - rank]; }

  InprocRanks room_{2};
  std::array<std::vector<Channel*>, 2> channels_{room_.channels(0), room_.channels(1)};
  std::array<Executor, 2> executors_{
      Executor(ring_all_reduce({.rank = 0, .size = 2}), channels_[0]),
      Executor(ring_all_reduce({.rank = 1, .size = 2}), channels_[1])};
  ReduceKernel kernel_ = reduce_kernel(ElementType::kFloat32, ReduceOp::kSum);
  std::array<Data, 2> in_{Data{1, 1}, Data{2, 2}};
  std::array<Data, 2> out_{};
};

InterpreterRow two_ranks(bool is_quick) {
  Exchange exchange;
  exchange.run_by_hand();
  exchange.require_sums();
  exchange.run_interpreted();
  exchange.require_sums();
  const Pair pair = in_turn(
      is_quick, [&] { exchange.run_by_hand(); }, [&] { exchange.run_interpreted(); });
  exchange.require_sums();
  return row_of("8 bytes between two ranks", pair, 2);
}

InterpreterRow one_rank(bool is_quick) {
  const std::vector<Channel*> channels{nullptr};
  Executor executor(ring_all_reduce({.rank = 0, .size = 1}), channels);
  const Data in{1, 1};
  Data out{};
  const auto by_hand = [&] {
    out = in;
    asm volatile("" : : "r"(out.data()) : "memory");  // keeps the compiler from removing the copy
  };
  const Pair pair = in_turn(is_quick, by_hand, [&] {
    executor.start(binding_of(in.data(), out.data(), kCount));
    executor.advance();
  });
  require(out, 1);
  return row_of("8 bytes of one rank", pair, 1);
}

}  // namespace

std::vector<InterpreterRow> fixed_rows(const InterpreterRequest& request) {
  std::vector<InterpreterRow> rows(2);
  time_together(1, 0,
                {[](int) {},
                 [&](int) {
                   rows = {two_ranks(request.is_quick), one_rank(request.is_quick)};
                 }});
  return rows;
}

}  // namespace kolo::bench
