#include "bench/measure/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/measure/statistics.h"
#include "transports/store/all_gather.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kMostLines = 16;  // up to so many ranks each have a line

// The counters of a channel by name, in the order of the JSON lines.
struct Counter {
  const char* name;
  std::uint64_t ChannelStatistics::*of_channel;
  std::uint64_t WaitStatistics::*of_waits;
  ChannelStatistics PeerStatistics::*which = &PeerStatistics::channel;

  std::uint64_t& of(PeerStatistics& peer) const {
    return of_channel != nullptr ? (peer.*which).*of_channel : peer.waits.*of_waits;
  }
  std::uint64_t of(const PeerStatistics& peer) const {
    return of_channel != nullptr ? (peer.*which).*of_channel : peer.waits.*of_waits;
  }
};

constexpr auto kOnStreams = &PeerStatistics::on_streams;

constexpr Counter kCounters[] = {
    {"segments_sent", &ChannelStatistics::segments_sent, nullptr},
    {"bytes_sent", &ChannelStatistics::bytes_sent, nullptr},
    {"segments_received", &ChannelStatistics::segments_received, nullptr},
    {"bytes_received", &ChannelStatistics::bytes_received, nullptr},
    {"system_calls", &ChannelStatistics::system_calls, nullptr},
    {"waits", nullptr, &WaitStatistics::waits},
    {"spins", nullptr, &WaitStatistics::spins},
    {"yields", nullptr, &WaitStatistics::yields},
    {"sleeps", nullptr, &WaitStatistics::sleeps},
    {"waited_ns", nullptr, &WaitStatistics::waited_ns},
    {"segments_enqueued_to", &ChannelStatistics::segments_sent, nullptr, kOnStreams},
    {"bytes_enqueued_to", &ChannelStatistics::bytes_sent, nullptr, kOnStreams},
    {"segments_enqueued_from", &ChannelStatistics::segments_received, nullptr, kOnStreams},
    {"bytes_enqueued_from", &ChannelStatistics::bytes_received, nullptr, kOnStreams},
};

bool has_streams(const PeerStatistics& peer) {
  return peer.on_streams.segments_sent + peer.on_streams.segments_received > 0;
}

bool is_used(const PeerStatistics& peer) {
  return peer.channel.segments_sent + peer.channel.segments_received + peer.waits.waits > 0 ||
         has_streams(peer);
}

double worked_us(const Profile& profile) {
  return std::accumulate(profile.steps.begin(), profile.steps.end(), 0.0,
                         [](double sum, const Profile::Steps& one) { return sum + one.worked_us; });
}

double waited_us(const Profile& profile) {
  return std::accumulate(profile.steps.begin(), profile.steps.end(), 0.0,
                         [](double sum, const Profile::Steps& one) { return sum + one.waited_us; });
}

PeerStatistics all_channels(const Profile& profile) {
  PeerStatistics sum;
  for (const PeerStatistics& peer : profile.peers) {
    for (const Counter& counter : kCounters) counter.of(sum) += counter.of(peer);
  }
  return sum;
}

// A rank with more lines in the table.
struct Marked {
  std::size_t rank;
  std::string_view mark;  // empty with one or two ranks
};

// By rank: how long the others waited for it, less its own waits. A rank that only passes its own
// wait on has about 0, so the highest value names the rank at the end of a chain of waits.
std::vector<double> delays_us(const std::vector<Profile>& profiles) {
  std::vector<double> delays(profiles.size());
  for (std::size_t rank = 0; rank < profiles.size(); ++rank) {
    const std::vector<PeerStatistics>& peers = profiles[rank].peers;
    for (std::size_t peer = 0; peer < std::min(peers.size(), delays.size()); ++peer) {
      const double waited_us = static_cast<double>(peers[peer].waits.waited_ns) / 1000;
      delays[peer] += waited_us;
      delays[rank] -= waited_us;
    }
  }
  return delays;
}

// In the order of the ranks.
std::vector<Marked> marked_ranks(const std::vector<Profile>& profiles) {
  std::vector<Marked> ranks;
  for (std::size_t rank = 0; rank < profiles.size(); ++rank) ranks.push_back({rank, ""});
  if (ranks.size() <= 2) return ranks;
  const std::vector<double> delays = delays_us(profiles);
  std::ranges::stable_sort(ranks, {}, [&](const Marked& a) { return delays[a.rank]; });
  const bool has_waits = delays[ranks.back().rank] > 0;
  ranks = {{ranks.front().rank, has_waits ? "waiting" : ""},
           {ranks[ranks.size() / 2].rank, "median"},
           {ranks.back().rank, has_waits ? "awaited" : ""}};
  std::ranges::sort(ranks, {}, &Marked::rank);
  return ranks;
}

std::string rank_line(const Profile& profile, std::size_t rank, std::string_view mark) {
  const PeerStatistics sum = all_channels(profile);
  return fmt::format("{:>24} {:>11.1f} {:>11.1f} {:>13} {:>13} {:>8} {:>8} {:>10} {:>8} {:>7}{}{}",
                     rank, worked_us(profile), waited_us(profile), sum.channel.bytes_sent,
                     sum.channel.bytes_received, sum.channel.system_calls, sum.waits.waits,
                     sum.waits.spins, sum.waits.yields, sum.waits.sleeps, mark.empty() ? "" : "  ",
                     mark);
}

void add_rank_lines(const std::vector<Profile>& profiles, const std::vector<Marked>& marked,
                    std::vector<std::string>& lines) {
  lines.push_back(fmt::format("{:>24} {:>11} {:>11} {:>13} {:>13} {:>8} {:>8} {:>10} {:>8} {:>7}",
                              "rank", "work us", "wait us", "bytes sent", "received", "syscalls",
                              "waits", "spins", "yields", "sleeps"));
  for (std::size_t rank = 0; rank < profiles.size(); ++rank) {
    const auto found = std::ranges::find(marked, rank, &Marked::rank);
    if (found == marked.end() && profiles.size() > kMostLines) continue;
    lines.push_back(
        rank_line(profiles[rank], rank, found == marked.end() ? std::string_view() : found->mark));
  }
  if (profiles.size() > kMostLines)
    lines.push_back(fmt::format("the other {} of {} ranks are in the JSON lines (--json)",
                                profiles.size() - marked.size(), profiles.size()));
}

// On streams a step's work is only to enqueue it, so bytes over that time is not a bandwidth.
std::string step_line(const Profile::Steps& one, std::size_t rank, double whole_us,
                      std::size_t width) {
  const bool is_enqueue = one.kind.starts_with("enqueue ");
  const double speed = gigabytes_per_second(one.bytes, one.worked_us);
  return fmt::format("{:>{}} {:>11} {:>11} {:>13} {:>11.1f} {:>11.1f} {:>6.1f} {:>7}", one.kind,
                     width, rank, one.segments, one.bytes, one.worked_us, one.waited_us,
                     whole_us > 0 ? 100 * (one.worked_us + one.waited_us) / whole_us : 0,
                     is_enqueue ? "-" : fmt::format("{:.2f}", speed));
}

// Kinds of steps on streams have longer names; the width keeps rows below their headings.
std::size_t step_width(const std::vector<Profile>& profiles) {
  std::size_t width = 24;
  for (const Profile& profile : profiles) {
    for (const Profile::Steps& step : profile.steps) width = std::max(width, step.kind.size());
  }
  return width;
}

void add_step_lines(const std::vector<Profile>& profiles, const std::vector<Marked>& marked,
                    std::vector<std::string>& lines) {
  const std::size_t width = step_width(profiles);
  lines.push_back(fmt::format("{:>{}} {:>11} {:>11} {:>13} {:>11} {:>11} {:>6} {:>7}", "step",
                              width, "of rank", "segments", "bytes", "work us", "wait us", "%",
                              "GB/s"));
  for (const Marked& one : marked) {
    const Profile& profile = profiles[one.rank];
    const double whole_us = worked_us(profile) + waited_us(profile);
    for (const Profile::Steps& step : profile.steps)
      lines.push_back(step_line(step, one.rank, whole_us, width));
  }
}

std::string channel_line(const PeerStatistics& peer, std::size_t from, std::size_t to) {
  const ChannelStatistics& channel = peer.channel;
  return fmt::format("{:>24} {:>11} {:>13} {:>11} {:>13} {:>8} {:>8} {:>10} {:>8} {:>7} {:>11.1f}",
                     fmt::format("rank {} to {}", from, to), channel.segments_sent,
                     channel.bytes_sent, channel.segments_received, channel.bytes_received,
                     channel.system_calls, peer.waits.waits, peer.waits.spins, peer.waits.yields,
                     peer.waits.sleeps, static_cast<double>(peer.waits.waited_ns) / 1000);
}

// The part that was enqueued on streams.
std::string stream_line(const PeerStatistics& peer) {
  const ChannelStatistics& given = peer.on_streams;
  return fmt::format("{:>24} {:>11} {:>13} {:>11} {:>13}", "on streams", given.segments_sent,
                     given.bytes_sent, given.segments_received, given.bytes_received);
}

void add_channel_lines(const std::vector<Profile>& profiles, const std::vector<Marked>& marked,
                       std::vector<std::string>& lines) {
  lines.push_back(fmt::format(
      "{:>24} {:>11} {:>13} {:>11} {:>13} {:>8} {:>8} {:>10} {:>8} {:>7} {:>11}", "channel", "sent",
      "bytes", "received", "bytes", "syscalls", "waits", "spins", "yields", "sleeps", "waited us"));
  for (const Marked& one : marked) {
    const std::vector<PeerStatistics>& peers = profiles[one.rank].peers;
    for (std::size_t peer = 0; peer < peers.size(); ++peer) {
      if (is_used(peers[peer])) lines.push_back(channel_line(peers[peer], one.rank, peer));
      if (has_streams(peers[peer])) lines.push_back(stream_line(peers[peer]));
    }
  }
}

nlohmann::ordered_json as_json(const Profile& profile) {
  auto steps = nlohmann::ordered_json::array();
  for (const Profile::Steps& one : profile.steps) {
    steps.push_back({{"kind", one.kind},
                     {"segments", one.segments},
                     {"bytes", one.bytes},
                     {"work_us", one.worked_us},
                     {"wait_us", one.waited_us}});
  }
  auto channels = nlohmann::ordered_json::array();
  for (std::size_t peer = 0; peer < profile.peers.size(); ++peer) {
    if (!is_used(profile.peers[peer])) continue;
    nlohmann::ordered_json channel = {{"peer", peer}};
    for (const Counter& counter : kCounters) {
      if (counter.which == kOnStreams && !has_streams(profile.peers[peer])) continue;
      channel[counter.name] = counter.of(profile.peers[peer]);
    }
    channels.push_back(std::move(channel));
  }
  return {{"steps", std::move(steps)}, {"channels", std::move(channels)}};
}

Profile from_json(const nlohmann::ordered_json& text, std::size_t size) {
  Profile profile;
  for (const auto& one : text["steps"]) {
    profile.steps.push_back(
        {one["kind"], one["segments"], one["bytes"], one["work_us"], one["wait_us"]});
  }
  profile.peers.resize(size);
  for (const auto& channel : text["channels"]) {
    PeerStatistics& peer = profile.peers[channel["peer"].get<std::size_t>()];
    for (const Counter& counter : kCounters)
      counter.of(peer) = channel.value(counter.name, std::uint64_t{0});
  }
  return profile;
}

}  // namespace

Profile profile_of(const Communicator& communicator) {
  Profile profile;
  for (const StepProfile& one : communicator.step_profile()) {
    profile.steps.push_back(
        {std::string(one.kind), one.steps, one.bytes, one.worked_us, one.waited_us});
  }
  for (int peer = 0; peer < communicator.size(); ++peer)
    profile.peers.push_back(communicator.peer_statistics(peer));
  return profile;
}

Profile between(const Profile& before, const Profile& after) {
  Profile result;
  for (Profile::Steps one : after.steps) {
    const auto then = std::ranges::find(before.steps, one.kind, &Profile::Steps::kind);
    if (then != before.steps.end()) {
      one.segments -= then->segments;
      one.bytes -= then->bytes;
      one.worked_us -= then->worked_us;
      one.waited_us -= then->waited_us;
    }
    if (one.segments > 0) result.steps.push_back(std::move(one));
  }
  result.peers = after.peers;
  for (std::size_t peer = 0; peer < before.peers.size(); ++peer) {
    for (const Counter& counter : kCounters)
      counter.of(result.peers[peer]) -= counter.of(before.peers[peer]);
  }
  return result;
}

std::vector<Profile> gather_profiles(Store& store, int rank, const std::string& key,
                                     const Profile& mine, Deadline deadline) {
  const std::size_t size = mine.peers.size();
  std::vector<Profile> profiles;
  for (const std::string& text : exchange(store, rank, static_cast<int>(size), key,
                                          as_json(mine).dump(), deadline, "tell its profile"))
    profiles.push_back(from_json(nlohmann::ordered_json::parse(text), size));
  return profiles;
}

std::vector<std::string> profile_lines(const std::vector<Profile>& profiles) {
  if (profiles.empty()) return {};
  const std::vector<Marked> marked = marked_ranks(profiles);
  std::vector<std::string> lines;
  add_rank_lines(profiles, marked, lines);
  add_step_lines(profiles, marked, lines);
  add_channel_lines(profiles, marked, lines);
  return lines;
}

nlohmann::ordered_json profile_json(const std::vector<Profile>& profiles) {
  auto all = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < profiles.size(); ++rank) {
    nlohmann::ordered_json one = {{"rank", rank}};
    one.update(as_json(profiles[rank]));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace kolo::bench
