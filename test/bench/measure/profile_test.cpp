// Table and JSON of profiles, with calls on streams and without.
#include "bench/measure/profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

constexpr const char* kLongest = "enqueue receive-reduce-copy-send";

Profile on_streams(std::size_t size) {
  Profile profile;
  profile.steps = {{"send", 1, 56, 2, 0}, {kLongest, 7, 7000, 14, 3}};
  profile.peers.resize(size);
  profile.peers[1].channel.bytes_sent = 9056;
  profile.peers[1].channel.segments_sent = 10;
  profile.peers[1].on_streams.bytes_sent = 7000;
  profile.peers[1].on_streams.segments_sent = 7;
  profile.peers[1].on_streams.bytes_received = 11;
  profile.peers[1].on_streams.segments_received = 2;
  return profile;
}

std::string line_with(const std::vector<std::string>& lines, std::string_view part) {
  for (const std::string& line : lines) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("a profile's table separates enqueue time from work, and gives it no bandwidth") {
  const auto lines = profile_lines({on_streams(2)});
  const std::string head = line_with(lines, "of rank");
  const std::string step = line_with(lines, kLongest);
  CHECK(step.ends_with(" -"));
  CHECK(step.size() == head.size());
  CHECK(line_with(lines, " send").size() == head.size());
  CHECK_FALSE(line_with(lines, " send").ends_with(" -"));
}

TEST_CASE("a channel's line is followed by its share on streams, if there is any") {
  const auto lines = profile_lines({on_streams(2)});
  const auto channel = std::ranges::find_if(
      lines, [](const std::string& line) { return line.find("rank 0 to 1") != std::string::npos; });
  REQUIRE(channel != lines.end());
  REQUIRE(channel + 1 != lines.end());
  CHECK_THAT(channel[1], ContainsSubstring("on streams") && ContainsSubstring("7000") &&
                             ContainsSubstring("11"));
  Profile host = on_streams(2);
  host.peers[1].on_streams = {};
  CHECK(line_with(profile_lines({host}), "on streams").empty());
}

TEST_CASE("profiles with and without streams reach all ranks complete") {
  const auto store = make_local_store();
  Profile host = on_streams(2);
  host.peers[1].on_streams = {};
  std::vector<Profile> seen;
  std::thread other(
      [&] { gather_profiles(*store, 1, "key", host, Clock::now() + std::chrono::minutes(1)); });
  seen = gather_profiles(*store, 0, "key", on_streams(2), Clock::now() + std::chrono::minutes(1));
  other.join();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].peers[1].on_streams.bytes_sent == 7000);
  CHECK(seen[0].peers[1].on_streams.segments_received == 2);
  CHECK(seen[1].peers[1].on_streams.bytes_sent == 0);
  CHECK(seen[1].peers[1].channel.bytes_sent == 9056);
  const auto json = profile_json(seen);
  CHECK(json[0]["channels"][0]["bytes_enqueued_to"] == 7000);
  CHECK(json[0]["channels"][0]["segments_enqueued_from"] == 2);
  CHECK_FALSE(json[1]["channels"][0].contains("bytes_enqueued_to"));
}

TEST_CASE(
    "a profile marks the rank at the end of the chain of waits, not the one that works most") {
  std::vector<Profile> ranks(4);
  for (Profile& rank : ranks) {
    rank.steps = {{"send", 1, 56, 2, 0}};
    rank.peers.resize(4);
  }
  ranks[1].steps[0].worked_us = 50;
  // A ring in which rank 2 stalls: 3 waits for 2, 0 for 3, 1 for 0.
  ranks[3].peers[2].waits.waited_ns = ranks[0].peers[3].waits.waited_ns = 20'000'000;
  ranks[1].peers[0].waits = {.waits = 1, .waited_ns = 19'950'000};
  const auto lines = profile_lines(ranks);
  CHECK_THAT(line_with(lines, "awaited"), ContainsSubstring("  2  "));
  CHECK_THAT(line_with(lines, "waiting"), ContainsSubstring("  1  "));
  CHECK_THAT(line_with(lines, "rank 1 to 0"), ContainsSubstring("19950.0"));
  for (Profile& rank : ranks) rank.peers.assign(4, {});
  CHECK(line_with(profile_lines(ranks), "awaited").empty());
}

TEST_CASE("a row counts the stream work since the row before") {
  Profile after = on_streams(2);
  after.peers[1].on_streams.bytes_sent += 500;
  after.steps[1].segments += 4;
  const Profile since = between(on_streams(2), after);
  CHECK(since.peers[1].on_streams.bytes_sent == 500);
  CHECK(since.peers[1].on_streams.bytes_received == 0);
  REQUIRE(since.steps.size() == 1);
  CHECK(since.steps[0].kind == kLongest);
}
