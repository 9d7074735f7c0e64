#include "bench/p2p/pass.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <span>
#include <stdexcept>

namespace kolo::bench {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kFewestSamples = 2;
constexpr std::size_t kMostSamples = 2000;  // of a pass
constexpr std::size_t kAcknowledgement = 8;

// The messages of one size, and the samples made with them.
class Sampler {
 public:
  Sampler(RankGroup& group, const P2pPassRequest& turn)
      : group_(group),
        turn_(turn),
        given_(turn.bytes * turn.window),
        taken_(turn.bytes * turn.window) {}

  // One sample of `pipe`, in microseconds; 0 at a rank that is not timed.
  double sample(Pipe& pipe) {
    ++turn_.salt;
    switch (turn_.kind) {
      case P2pKind::kLatency:
        return rank() == 0 ? there_and_back(pipe) : back(pipe);
      case P2pKind::kBandwidth:
      case P2pKind::kMessageRate:
        return rank() == 0 ? give_window(pipe) : take_window(pipe);
      case P2pKind::kBidirectional:
        return both_ways(pipe);
    }
    return 0;
  }

  // Tells the pipe the memory of all messages.
  void place_in(Pipe& pipe) {
    const std::array<std::span<std::byte>, 3> memory{given_, taken_, acknowledgement_};
    pipe.place(memory);
  }

  // Wrong bytes on this rank.
  std::uint64_t wrong() const { return wrong_; }
  std::uint32_t salt() const { return turn_.salt; }

 private:
  int rank() const { return group_.rank(); }
  Messages all(std::vector<std::byte>& memory) const {
    return {memory.data(), turn_.bytes, turn_.window};
  }
  Messages one(std::vector<std::byte>& memory, std::size_t index) const {
    return {memory.data() + index * turn_.bytes, turn_.bytes, 1};
  }
  Pattern pattern() const { return {ElementType::kUint8, ReduceOp::kSum, 1, turn_.salt}; }
  void fill_given() { fill(given_.data(), 0, given_.size(), rank(), pattern()); }
  void check_taken(int giver) {
    if (!turn_.is_checked) return;
    wrong_ += count_wrong_copies(taken_.data(), 0, taken_.size(), giver, pattern());
  }

  // Brings the data to the pipe's memory, at both ranks, before the clock starts.
  void begin(Pipe& pipe) {
    pipe.bring();
    group_.wait();
  }

  // The peer sends back the received message, so errors of either way are found here.
  double there_and_back(Pipe& pipe) {
    fill_given();
    begin(pipe);
    const auto before = Clock::now();
    for (std::size_t i = 0; i < turn_.window; ++i) {
      pipe.exchange(one(given_, i), {});
      pipe.exchange({}, one(taken_, i));
    }
    pipe.finish();
    const Microseconds time = Clock::now() - before;
    pipe.fetch();
    check_taken(0);
    return time.count() / 2 / static_cast<double>(turn_.window);
  }

  double back(Pipe& pipe) {
    begin(pipe);
    for (std::size_t i = 0; i < turn_.window; ++i) {
      pipe.exchange({}, one(taken_, i));
      pipe.exchange(one(taken_, i), {});
    }
    pipe.finish();
    return 0;
  }

  double give_window(Pipe& pipe) {
    fill_given();
    begin(pipe);
    const auto before = Clock::now();
    pipe.exchange(all(given_), {});
    pipe.exchange({}, {acknowledgement_.data(), kAcknowledgement, 1});
    pipe.finish();
    const Microseconds time = Clock::now() - before;
    pipe.fetch();
    if (turn_.is_checked)
      wrong_ += count_wrong_copies(acknowledgement_.data(), 0, kAcknowledgement, 1, pattern());
    return time.count();
  }

  double take_window(Pipe& pipe) {
    fill(acknowledgement_.data(), 0, kAcknowledgement, rank(), pattern());
    begin(pipe);
    pipe.exchange({}, all(taken_));
    pipe.exchange({acknowledgement_.data(), kAcknowledgement, 1}, {});
    pipe.finish();
    pipe.fetch();
    check_taken(0);
    return 0;
  }

  double both_ways(Pipe& pipe) {
    fill_given();
    begin(pipe);
    const auto before = Clock::now();
    pipe.exchange(all(given_), all(taken_));
    pipe.finish();
    const Microseconds time = Clock::now() - before;
    pipe.fetch();
    check_taken(1 - rank());
    return time.count();
  }

  RankGroup& group_;
  P2pPassRequest turn_;
  std::vector<std::byte> given_;
  std::vector<std::byte> taken_;
  std::array<std::byte, kAcknowledgement> acknowledgement_{};
  std::uint64_t wrong_ = 0;
};

// During its lifetime, a rank that waits in the group calls the pipe's get_on(), if the pipe needs
// that.
class Meanwhile {
 public:
  Meanwhile(Pipe& pipe, RankGroup& group) : group_(group), is_set_(pipe.needs_calls()) {
    if (is_set_) group_.set_meanwhile([&pipe] { pipe.get_on(); });
  }
  ~Meanwhile() {
    if (is_set_) group_.set_meanwhile({});
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  RankGroup& group_;
  const bool is_set_;
};

// Returns the number of counted samples: the requested one, or an estimate from the warm-up.
std::size_t warm_up(Sampler& sampler, RankGroup& group, const P2pPassRequest& turn, Pipe& pipe) {
  double quickest = std::numeric_limits<double>::max();
  const int least = turn.samples == 0 ? 1 : 0;
  for (int i = 0; i < std::max(turn.warmup, least); ++i) {
    const auto begin = Clock::now();
    sampler.sample(pipe);
    quickest = std::min(quickest, Microseconds(Clock::now() - begin).count());
  }
  if (turn.samples > 0) return std::min(turn.samples, kMostIterations);
  const double fitting = turn.seconds * 1e6 / group.largest(quickest);
  return std::clamp(static_cast<std::size_t>(fitting), kFewestSamples, kMostSamples);
}

}  // namespace

P2pPassResult Pipe::run_pass(const P2pPassRequest&) {
  throw std::logic_error(library() + " runs no passes by itself");
}

P2pPassResult run_pass(Pipe& pipe, const P2pPassRequest& turn, RankGroup& group) {
  const Meanwhile meanwhile(pipe, group);
  Sampler sampler(group, turn);
  sampler.place_in(pipe);
  const std::size_t samples = warm_up(sampler, group, turn, pipe);
  std::vector<double> times;
  times.reserve(samples);
  for (std::size_t i = 0; i < samples; ++i) times.push_back(sampler.sample(pipe));
  return {group.largest(times), group.sum(sampler.wrong()), sampler.salt()};
}

}  // namespace kolo::bench
