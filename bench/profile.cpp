#include "bench/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/statistics.h"

namespace kolo::bench {
namespace {

// The same kind earlier; nothing where it had not occurred.
StepProfile earlier(const Profile& before, std::string_view kind) {
  const auto found = std::ranges::find(before.steps, kind, &StepProfile::kind);
  return found == before.steps.end() ? StepProfile{} : *found;
}

std::string step_line(const StepProfile& now, const StepProfile& then, double whole_us) {
  const double worked = now.worked_us - then.worked_us;
  const double waited = now.waited_us - then.waited_us;
  const std::uint64_t bytes = now.bytes - then.bytes;
  return fmt::format("{:>24} {:>9} {:>13} {:>11.1f} {:>11.1f} {:>6.1f} {:>7.2f}", now.kind,
                     now.steps - then.steps, bytes, worked, waited,
                     whole_us > 0 ? 100 * (worked + waited) / whole_us : 0,
                     gigabytes_per_second(bytes, worked));
}

std::string peer_line(std::size_t peer, const PeerStatistics& now, const PeerStatistics& then) {
  const ChannelStatistics& a = then.channel;
  const ChannelStatistics& b = now.channel;
  return fmt::format("{:>24} {:>9} {:>13} {:>9} {:>13} {:>8} {:>8} {:>10} {:>8} {:>7}",
                     fmt::format("rank {}", peer), b.segments_sent - a.segments_sent,
                     b.bytes_sent - a.bytes_sent, b.segments_received - a.segments_received,
                     b.bytes_received - a.bytes_received, b.system_calls - a.system_calls,
                     now.waits.waits - then.waits.waits, now.waits.spins - then.waits.spins,
                     now.waits.yields - then.waits.yields, now.waits.sleeps - then.waits.sleeps);
}

bool is_used(const PeerStatistics& now, const PeerStatistics& then) {
  return now.channel.segments_sent != then.channel.segments_sent ||
         now.channel.segments_received != then.channel.segments_received ||
         now.waits.waits != then.waits.waits;
}

}  // namespace

Profile profile_of(const Communicator& communicator) {
  Profile profile;
  profile.steps = communicator.step_profile();
  for (int peer = 0; peer < communicator.size(); ++peer)
    profile.peers.push_back(communicator.peer_statistics(peer));
  return profile;
}

std::vector<std::string> profile_lines(const Profile& before, const Profile& after) {
  double whole_us = 0;
  for (const StepProfile& one : after.steps) {
    const StepProfile then = earlier(before, one.kind);
    whole_us += one.worked_us - then.worked_us + one.waited_us - then.waited_us;
  }
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{:>24} {:>9} {:>13} {:>11} {:>11} {:>6} {:>7}", "rank 0's steps",
                              "segments", "bytes", "work us", "wait us", "%", "GB/s"));
  for (const StepProfile& one : after.steps) {
    const StepProfile then = earlier(before, one.kind);
    if (one.steps > then.steps) lines.push_back(step_line(one, then, whole_us));
  }
  lines.push_back(fmt::format("{:>24} {:>9} {:>13} {:>9} {:>13} {:>8} {:>8} {:>10} {:>8} {:>7}",
                              "rank 0's channel to", "sent", "bytes", "received", "bytes",
                              "syscalls", "waits", "spins", "yields", "sleeps"));
  for (std::size_t peer = 0; peer < after.peers.size(); ++peer) {
    if (is_used(after.peers[peer], before.peers[peer]))
      lines.push_back(peer_line(peer, after.peers[peer], before.peers[peer]));
  }
  return lines;
}

}  // namespace kolo::bench
