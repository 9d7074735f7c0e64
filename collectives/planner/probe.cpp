#include "collectives/planner/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "collectives/element.h"
#include "collectives/engine/wait_graph.h"
#include "collectives/executor/call_header.h"
#include "collectives/planner/costs_text.h"
#include "collectives/planner/oversubscription.h"
#include "transports/error.h"

namespace kolo::inline v0 {
namespace {

constexpr int kBatches = 3;         // the shortest counts: disturbances only add time
constexpr int kRoundsPerBatch = 8;  // of ping-pong
constexpr int kSegmentsPerBatch = 12;
constexpr int kTogether = 3;  // segments sent together; they fit into any credit
static_assert(kTogether <= kMinimumCredit);
constexpr double kMostBusy = 0.4;   // largest share of a message's time that is its sender's
constexpr double kUsualBusyUs = 5;  // busy time of a message, where it is not measured
constexpr std::size_t kShortSegment = 4 * 1024;
constexpr std::size_t kLongSegment = 64 * 1024;

// A transport may use its buffers in turn, and the first message through each costs page faults,
// which cost more than the message. UCX has 256 buffers of 16 KiB between two ranks in shared
// memory.
constexpr std::size_t kBuffered = 288 * 16 * 1024;
constexpr int kWarmingRound = 4;  // segments until the first rank says if more follow
constexpr auto kWarmingTime =
    std::chrono::milliseconds(3);  // page faults do not matter on slow networks

// Time limit of a pair, and of the ring. On a slow link the measurements end there, and the costs
// follow from the first messages. At most this part of the time to the deadline is used.
constexpr std::chrono::milliseconds kBudget{1000};
constexpr int kBudgetPart = 8;

Clock::time_point end_of_budget(Deadline deadline) {
  const auto now = Clock::now();
  return now + std::min<Clock::duration>(kBudget, (deadline - now) / kBudgetPart);
}

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

template <typename Work>
double time_of(const Work& work) {
  const auto begin = Clock::now();
  work();
  return microseconds_since(begin);
}

// The shortest of kBatches runs of `work`, after a warm-up run.
template <typename Work>
double shortest(const Work& work) {
  work();
  double best = 1e300;
  for (int batch = 0; batch < kBatches; ++batch) best = std::min(best, time_of(work));
  return best;
}

// A request, and the waits that this rank has published.
struct Probing : ProbeRequest {
  explicit Probing(const ProbeRequest& request) : ProbeRequest(request) {}

  Deadline next_wait_report = Clock::now() + kPublishWaitsAfter;
  bool has_published_wait = false;
};

// Two ranks that measure their channel; both call the same functions.
class Pair {
 public:
  Pair(Probing& request, int peer)
      : request_(request),
        channel_(*request.channels[static_cast<std::size_t>(peer)]),
        is_first_(request.rank < peer) {}

  Link measure() {
    const std::size_t longest =
        std::min(kLongSegment, channel_.capabilities().preferred_segment_bytes);
    const std::size_t shorter = std::min(kShortSegment, longest / 2);
    ping_pong(1, 1);  // connects, and reports a failure to connect
    end_ = end_of_budget(request_.deadline);
    const double round_us = time_of([&] { ping_pong(1, 1); });
    double us_per_byte = first_us_per_byte(shorter, round_us);
    warm_up(longest, us_per_byte);
    const double way_us = round_trip(1, round_us) / 2;
    const double together_us = round_trip(kTogether, 2 * way_us) / 2;
    // A message keeps its sender and its receiver busy for the same time. Together that cannot
    // exceed the message's time.
    const double busy_us = std::min(send_one(round_us), kMostBusy * way_us);
    const auto short_us = streamed(shorter, 2 * way_us, us_per_byte);
    if (short_us) us_per_byte = std::min(us_per_byte, *short_us / static_cast<double>(shorter));
    const auto long_us = streamed(longest, 2 * way_us, us_per_byte);
    until([&] { return channel_.is_drained(); });  // next, ranks wait at the store
    if (short_us && long_us)
      us_per_byte = std::max(0.0, (*long_us - *short_us) / static_cast<double>(longest - shorter));
    Link link;
    link.send_us_per_byte = link.receive_us_per_byte = us_per_byte;
    link.send_us = link.receive_us = busy_us;
    link.latency_us = way_us - 2 * busy_us;
    link.next_us = std::clamp((together_us - way_us) / (kTogether - 1) / 2, 0.0, busy_us);
    return link;
  }

 private:
  // In each round `together` segments are sent as one, and as many are returned.
  void ping_pong(int rounds, int together) {
    for (int i = 0; i < rounds; ++i) {
      for (int k = together; is_first_ && k-- > 0;) say(k > 0 ? kMore : kPlain);
      for (int k = 0; k < together; ++k) hear();
      for (int k = together; !is_first_ && k-- > 0;) say(k > 0 ? kMore : kPlain);
    }
  }

  // Uses all buffers, as far as time allows.
  void warm_up(std::size_t bytes, double us_per_byte) {
    const auto end = Clock::now() + kWarmingTime;
    const double round_us = static_cast<double>(kWarmingRound * bytes) * us_per_byte;
    memory_.resize(bytes);
    for (std::size_t sent = 0;
         agreed(sent == 0 || (sent < kBuffered && Clock::now() < end), round_us);
         sent += kWarmingRound * bytes) {
      for (int i = 0; i < kWarmingRound; ++i) stream_one(bytes);
    }
    until([&] { return channel_.is_drained(); });
  }

  // The first rank's decision, sent to the second: whether work follows that is wanted and is
  // expected to end within the budget. The second rank confirms, so that no decision travels while
  // the work is timed. A refusal costs no time.
  bool agreed(bool is_wanted, double expected_us) {
    const std::chrono::duration<double, std::micro> left = end_ - Clock::now();
    bool follows = is_wanted && expected_us <= left.count();
    if (is_first_) say(kPlain, follows ? 1 : 0);
    if (!is_first_) follows = hear() != 0;
    if (!is_first_ && follows) say();
    if (is_first_ && follows) hear();
    return follows;
  }

  // The shortest of kBatches runs of `work` after a warm-up run, or of as many as the budget
  // allows; nullopt: of none.
  template <typename Work>
  std::optional<double> shortest_agreed(double expected_us, const Work& work) {
    std::optional<double> best;
    for (int run = 0; run <= kBatches && agreed(true, expected_us); ++run) {
      expected_us = time_of(work);
      best = run <= 1 ? expected_us : std::min(*best, expected_us);
    }
    return best;
  }

  // Microseconds per round of ping_pong().
  double round_trip(int together, double expected_us) {
    const auto rounds_us = shortest_agreed(kRoundsPerBatch * expected_us,
                                           [&] { ping_pong(kRoundsPerBatch, together); });
    return rounds_us ? *rounds_us / kRoundsPerBatch : expected_us;
  }

  // A first guess, too high rather than too low: the time of one segment beyond a round trip.
  double first_us_per_byte(std::size_t bytes, double round_us) {
    memory_.resize(bytes);
    const auto answered_us = shortest_agreed(round_us, [&] { stream(1, bytes); });
    return std::max(0.0, answered_us.value_or(round_us) - round_us) / static_cast<double>(bytes);
  }

  void stream_one(std::size_t bytes) {
    if (is_first_) {
      until([&] { return channel_.send({memory_.data(), bytes}); });
    } else {
      until([&] { return channel_.receive({memory_.data(), bytes}); });
    }
  }

  // A stream to the second rank, which answers at the end.
  void stream(int segments, std::size_t bytes) {
    for (int i = 0; i < segments; ++i) stream_one(bytes);
    if (!is_first_) say();
    if (is_first_) hear();
    until([&] { return channel_.is_drained(); });
  }

  // Time that one message takes of an otherwise idle sender. A stream of messages would not show
  // it: it waits for credit, and one system call may take several segments.
  double send_one(double round_us) {
    constexpr int kRounds = 2 * kRoundsPerBatch;
    if (!agreed(true, kRounds * round_us)) return kUsualBusyUs;
    double least = 1e300;
    for (int i = 0; i < kRounds; ++i) {
      if (!is_first_) say();
      hear();
      least = std::min(least, time_of([&] {
                         if (is_first_) say();
                       }));
    }
    return least;
  }

  // Microseconds per segment of a stream.
  std::optional<double> streamed(std::size_t bytes, double round_us, double us_per_byte) {
    memory_.resize(std::max(memory_.size(), bytes));
    const auto whole = static_cast<double>(kSegmentsPerBatch * bytes);
    const auto stream_us =
        shortest_agreed(round_us + whole * us_per_byte, [&] { stream(kSegmentsPerBatch, bytes); });
    if (!stream_us) return std::nullopt;
    return *stream_us / kSegmentsPerBatch;
  }

  void say(unsigned flags = kPlain, int first_byte = 0);
  int hear();
  template <typename Attempt>
  void until(const Attempt& attempt);

  Probing& request_;
  Channel& channel_;
  bool is_first_;
  Clock::time_point end_{};  // of the budget
  std::vector<std::byte> memory_;
};

// Publishes the rank that this rank has waited long for; empty: no wait.
void publish_probe_wait(Probing& request, std::span<const WaitEdge> awaited) {
  publish_wait_edges(*request.store, request.rank, awaited, request.channels);
  request.has_published_wait = !awaited.empty();
  request.next_wait_report = Clock::now() + kPublishWaitsAfter;
}

Error timed_out(Probing& request, int peer) {
  const int last = find_stalled_rank(*request.store, request.rank, request.size, peer,
                                     wait_graph_deadline(*request.store));
  const std::string channel = request.channels[static_cast<std::size_t>(peer)]->why_unconnected();
  return {ErrorCode::kDeadline, last,
          fmt::format(
              "rank {}: measuring the channel to rank {} ({}) did not end in {:.1f} s; {}{}{}is "
              "rank {} alive? Busy or slow machines need a longer timeout",
              request.rank, peer, request.transport->name_to(peer),
              std::chrono::duration<double>(Clock::now() - request.begin).count(),
              wait_chain_text(peer, last), channel, channel.empty() ? "" : "; ", last)};
}

// Retries until `attempt` succeeds; the transport makes progress meanwhile.
template <typename Attempt>
void wait_until(Probing& request, int peer, const Attempt& attempt) {
  while (!attempt()) {
    request.transport->progress();
    if (attempt()) break;
    const Deadline until = std::min(request.deadline, request.next_wait_report);
    if (request.policy->pause(*request.transport, *request.store, until)) continue;
    if (Clock::now() >= request.deadline) throw timed_out(request, peer);
    const WaitEdge awaited{peer};
    publish_probe_wait(request, {&awaited, 1});
  }
  if (request.has_published_wait) [[unlikely]]
    publish_probe_wait(request, {});
  request.policy->moved();
}

// Sends one small segment, as long as a call header's.
void say_to(Probing& request, int peer, unsigned flags = kPlain, int first_byte = 0) {
  Channel& channel = *request.channels[static_cast<std::size_t>(peer)];
  wait_until(request, peer, [&] {
    std::byte* slot = channel.reserve(kHeaderSegmentBytes);
    if (slot == nullptr) return false;
    std::memset(slot, 0, kHeaderSegmentBytes);
    slot[0] = static_cast<std::byte>(first_byte);
    channel.commit(flags);
    return true;
  });
}

// Receives a small segment and returns its first byte.
int hear_from(Probing& request, int peer) {
  Channel& channel = *request.channels[static_cast<std::size_t>(peer)];
  int first_byte = 0;
  wait_until(request, peer, [&] {
    const std::byte* const segment = channel.view(kHeaderSegmentBytes);
    if (segment == nullptr) return false;
    first_byte = static_cast<int>(segment[0]);
    channel.release();
    return true;
  });
  return first_byte;
}

void Pair::say(unsigned flags, int first_byte) {
  say_to(request_, channel_.peer(), flags, first_byte);
}
int Pair::hear() { return hear_from(request_, channel_.peer()); }
template <typename Attempt>
void Pair::until(const Attempt& attempt) {
  wait_until(request_, channel_.peer(), attempt);
}

// The first two ranks for which `is_pair` holds.
struct Two {
  int first = kNoPeer;
  int second = kNoPeer;
};
template <typename IsPair>
Two find_pair(std::span<const int> hosts, const IsPair& is_pair) {
  for (std::size_t one = 0; one < hosts.size(); ++one) {
    for (std::size_t other = one + 1; other < hosts.size(); ++other) {
      if (is_pair(hosts[one], hosts[other]))
        return {static_cast<int>(one), static_cast<int>(other)};
    }
  }
  return {};
}

// The two ranks measure; the first publishes the result.
void measure_pair(Probing& request, Two pair, std::string_view key) {
  if (request.rank != pair.first && request.rank != pair.second) return;
  const int peer = request.rank == pair.first ? pair.second : pair.first;
  Costs costs;
  costs.local = Pair(request, peer).measure();
  if (request.rank == pair.first) request.store->set(key, to_text(costs));
}

// Measures passes over cached memory, per byte.
void measure_passes(Costs& costs) {
  std::vector<float> one(kLongSegment / sizeof(float), 1.0F);
  std::vector<float> other(one.size(), 2.0F);
  const auto bytes = static_cast<double>(kLongSegment);
  costs.copy_us_per_byte =
      shortest([&] { std::memcpy(one.data(), other.data(), kLongSegment); }) / bytes;
  const ReduceKernel sum = reduce_kernel(ElementType::kFloat32, ReduceOp::kSum);
  costs.reduce_us_per_byte =
      shortest([&] { sum(one.data(), nullptr, one.data(), other.data(), one.size(), 1); }) / bytes;
}

// Microseconds per round.
double measure_rounds(Probing& request, const RingRound& round) {
  const int right = (request.rank + 1) % request.size;
  const int left = (request.rank + request.size - 1) % request.size;
  const auto play = [&](RingStep move) {
    switch (move) {
      case RingStep::kSendRight:
        return say_to(request, right);
      case RingStep::kSendLeft:
        return say_to(request, left);
      case RingStep::kReceiveRight:
        hear_from(request, right);
        return;
      case RingStep::kReceiveLeft:
        hear_from(request, left);
        return;
    }
  };
  const double rounds_us = shortest([&] {
    for (int i = 0; i < kRingRounds; ++i) std::ranges::for_each(round, play);
  });
  for (const int peer : {right, left}) {  // next, ranks wait at the store and make no progress
    Channel& channel = *request.channels[static_cast<std::size_t>(peer)];
    wait_until(request, peer, [&] { return channel.is_drained(); });
  }
  return rounds_us / kRingRounds;
}

// Expected time of all rounds, of both orders. Each takes a message to the right and one back.
double ring_us(const Costs& costs) {
  const auto way_us = [](const Link& link) {
    return link.send_us + link.latency_us + link.receive_us;
  };
  constexpr int kRounds = 2 * (kBatches + 1) * kRingRounds;
  return kRounds * 2 * std::max(way_us(costs.local), way_us(costs.remote));
}

double budget_us(Deadline deadline) {
  const std::chrono::duration<double, std::micro> budget = end_of_budget(deadline) - Clock::now();
  return budget.count();
}

int most_ranks_of_a_host(std::span<const int> hosts) {
  std::vector<int> ranks(hosts.size());
  for (const int host : hosts) ++ranks[static_cast<std::size_t>(host)];
  return *std::ranges::max_element(ranks);
}

// The pair's costs without the pass over memory, which sender and receiver make in any case.
Link beside_passes(Link link, double copy_us_per_byte) {
  link.send_us_per_byte = std::max(0.0, link.send_us_per_byte - copy_us_per_byte);
  link.receive_us_per_byte = std::max(0.0, link.receive_us_per_byte - copy_us_per_byte);
  return link;
}

// A value that rank 0 publishes to all.
std::string hear_of(Probing& request, std::string_view key, std::string_view what) {
  try {
    return request.store->get(key, request.deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadline) throw;
    const int last = find_stalled_rank(*request.store, request.rank, request.size, 0,
                                       wait_graph_deadline(*request.store));
    const std::string why =
        last == 0 ? "rank 0, or a rank that measures, stopped at the start of the job"
                  : fmt::format("{}is rank {} alive?", wait_chain_text(0, last), last);
    throw Error(ErrorCode::kDeadline, last,
                fmt::format("rank {}: rank 0 has not published {}: {}; {}", request.rank, what, why,
                            error.what()));
  }
}

// On rank 0: combines the costs that the pairs published.
Costs put_together(Probing& request, Two local, Two remote) {
  Costs costs;
  measure_passes(costs);
  costs.overhead_us = 0.02;  // the executor's own, per segment: see kolo-bench interpreter
  const auto link_of = [&](std::string_view key) {
    return beside_passes(costs_from(request.store->get(key, request.deadline)).local,
                         costs.copy_us_per_byte);
  };
  if (local.first != kNoPeer) costs.local = link_of("probe/local");
  if (remote.first != kNoPeer) costs.remote = link_of("probe/remote");
  if (local.first == kNoPeer) costs.local = costs.remote;
  if (remote.first == kNoPeer) costs.remote = costs.local;
  costs.cores = request.cores;
  return costs;
}

}  // namespace

Costs measure_costs(const ProbeRequest& asked) {
  if (asked.size == 1) return {};
  Probing request(asked);
  const Two local = find_pair(request.hosts, [](int one, int other) { return one == other; });
  const Two remote = find_pair(request.hosts, [](int one, int other) { return one != other; });
  if (local.first != kNoPeer) measure_pair(request, local, "probe/local");
  if (remote.first != kNoPeer) measure_pair(request, remote, "probe/remote");
  Costs costs;
  if (request.rank == 0) {
    costs = put_together(request, local, remote);
    const bool is_oversubscribed = most_ranks_of_a_host(request.hosts) > costs.cores;
    const bool follows = is_oversubscribed && ring_us(costs) <= budget_us(request.deadline);
    request.store->set("probe/oversubscribed", follows ? "yes" : "no");
  }
  if (hear_of(request, "probe/oversubscribed", "the measurements of the channels") == "yes") {
    const RingTimes oversubscribed{measure_rounds(request, kAlternatingRound),
                                   measure_rounds(request, kSendsFirstRound)};
    if (request.rank == 0) costs = fit_shared_core_costs(costs, oversubscribed, request.hosts);
  }
  if (request.rank == 0) request.store->set("probe/costs", to_text(costs));
  return costs_from(hear_of(request, "probe/costs", "the costs of the channels"));
}

}  // namespace kolo::inline v0
