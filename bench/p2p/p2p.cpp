#include "bench/p2p/p2p.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "bench/cli/arguments.h"
#include "bench/cli/sizes.h"
#include "bench/device/pipe_on_device.h"
#include "bench/limits/run_limit.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/cores.h"
#include "bench/measure/measure.h"
#include "bench/measure/pass_filter.h"
#include "bench/measure/rank_group.h"
#include "bench/measure/statistics.h"
#include "bench/output/report.h"
#include "bench/output/run_info.h"
#include "bench/peers/peers.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kMostInRow = 16;  // round trips in a latency sample
constexpr std::size_t kMostInWindow = 64;
constexpr std::size_t kFewestInWindow = 4;
constexpr std::size_t kRowBytes = std::size_t{64} << 10;
constexpr std::size_t kWindowBytes = std::size_t{16} << 20;
constexpr const char* kOfLimit =
    "of limit: the least time for a sample's bytes, measured in turn, over "
    "the row's time; -: not known, or other programs had the cores";

// The fields of a row that are known before the measurement.
P2pRow row_of(const Arguments& arguments, const Pipe& pipe, std::size_t bytes) {
  P2pRow row;
  row.kind = arguments.p2p.kind;
  row.library = pipe.library();
  row.level = pipe.level();
  row.transport = pipe.transport();
  row.carrier = pipe.carrier();
  row.version = pipe.library() == "kolo" ? own_version() : pipe.version();
  row.bytes = bytes;
  row.window = window_of(arguments.p2p, bytes);
  if (pipe.library() == "kolo") row.segment_bytes = arguments.segment_bytes;
  row.device = pipe.device();
  return row;
}

// One pipe at one size, over the passes.
struct Played {
  std::size_t per_pass = 0;
  std::vector<std::vector<double>> turns_us;  // times of the samples of each pass
  std::uint64_t wrong = 0;
};

// A pipe's first pass sets the number of samples of its later passes.
void play_pass(Pipe& pipe, P2pPassRequest& turn, int pass, const Arguments& arguments,
               RankGroup& group, Played& played) {
  const auto passes = static_cast<std::size_t>(arguments.passes);
  const auto asked = static_cast<std::size_t>(arguments.iterations);
  turn.samples = asked > 0 ? std::max<std::size_t>(1, asked / passes) : played.per_pass;
  turn.warmup = pass == 0 ? std::max(1, arguments.warmup) : 1;  // other pipes ran in between
  const P2pPassResult result =
      pipe.runs_in_workers() ? pipe.run_pass(turn) : run_pass(pipe, turn, group);
  turn.salt = result.salt;
  played.per_pass = result.times_us.size();
  played.turns_us.push_back(result.times_us);
  played.wrong += result.wrong;
}

std::string wrong_text(const P2pRow& row) {
  return row.wrong ? fmt::format("{}", *row.wrong) : "-";
}

std::size_t over_width(const std::vector<Pipe*>& pipes) {
  std::vector<std::string> transports;
  for (const Pipe* pipe : pipes) transports.push_back(pipe->transport());
  return bench::over_width(transports);
}

// The usable pipes, and each one's name in --against; empty: no peer.
struct Able {
  std::vector<Pipe*> pipes;
  std::vector<std::string> peers;
  std::vector<std::string> left_out;  // "openmpi left out: ..."
};

// The peers' pipes are the last ones.
Able find_able(const Arguments& arguments, const std::vector<std::unique_ptr<Pipe>>& pipes) {
  const std::size_t own = pipes.size() - arguments.against.size();
  Able able;
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    const std::string peer = i < own ? "" : arguments.against[i - own];
    const std::string objection = pipes[i]->objection();
    if (!objection.empty()) {
      able.left_out.push_back(
          fmt::format("{} left out: {}", peer.empty() ? pipes[i]->library() : peer, objection));
      continue;
    }
    able.pipes.push_back(pipes[i].get());
    able.peers.push_back(peer);
  }
  for (const std::string& peer : arguments.no_peers)
    able.left_out.push_back(fmt::format("{} left out: {}", peer, why_left_out(peer)));
  return able;
}

std::string peers_text(const Able& able) {
  std::vector<std::string> peers;
  for (std::size_t i = 0; i < able.pipes.size(); ++i) {
    if (able.peers[i].empty()) continue;
    peers.push_back(
        peer_over(able.peers[i], able.pipes[i]->transport(), able.pipes.front()->transport()));
  }
  return peers.empty() ? "" : fmt::format(", in turn with {}", fmt::join(peers, ", "));
}

// Prints the pipes, their versions, and which requested peers are left out.
void print_heading(const Arguments& arguments, const Able& able, double cache_line_us,
                   std::ostream& table) {
  const Pipe& own = *able.pipes.front();
  std::vector<std::string> versions = {own_version()};
  for (const Pipe* pipe : able.pipes) {
    const std::string version = pipe->version();
    if (!version.empty() && std::ranges::find(versions, version) == versions.end())
      versions.push_back(version);
  }
  table << fmt::format("# kolo-bench p2p {}: {}{}\n# {}; {}\n# {}\n", to_string(arguments.p2p.kind),
                       ranks_text(2, own.transport(), own.carrier()), peers_text(able),
                       describe_machine(), surroundings_text(cache_line_us),
                       fmt::join(versions, "; "));
  if (const std::string device = own.device(); !device.empty()) {
    table << fmt::format(
        "# messages are in memory of {}; a sample ends when the host sees its streams' end\n",
        device);
  }
  for (const std::string& text : able.left_out) table << "# " << text << '\n';
  if (const std::string text = iterations_text(arguments); !text.empty())
    table << "# " << text << '\n';
  table << fmt::format(
      "#{:>10} {:>7} {:>12} {:>9} {:>{}} {:>9} {:>9} {:>9} {:>9} {:>7} {:>8} {:>6} {:>7} {:>6} "
      "| {:>8} {:>8} {:>9}\n",
      "bytes", "window", "by", "level", "over", over_width(able.pipes), "time", "p10", "p90", "p99",
      "GB/s", "Mmsg/s", "wrong", "samples", "ratio", "limit", "of limit", "line");
}

// `first` is the first pipe's row of the same size.
void print(const P2pRow& row, const P2pRow& first, std::size_t over_width, std::ostream& table) {
  const bool is_first = &row == &first || first.time_us.median <= 0;
  table << fmt::format(
      " {:>10} {:>7} {:>12} {:>9} {:>{}} {:>9} {:>9} {:>9} {:>9} {:>7.2f} {:>8.3f} {:>6} {:>7} "
      "{:>6} | {:>8} {:>8} {:>9}\n",
      row.bytes, row.window, row.peer.empty() ? row.library : row.peer, row.level, row.transport,
      over_width, time_text(row.time_us.median), time_text(row.time_us.p10),
      time_text(row.time_us.p90), p99_text(row.time_us.p99, row.samples), bandwidth(row),
      messages_per_second(row) / 1e6, wrong_text(row), row.samples,
      is_first ? "" : ratio_text(row.time_us.median / first.time_us.median),
      row.limit_us ? time_text(*row.limit_us) : "-",
      row.limit_us ? fmt::format("{:.0f} %", 100 * *row.limit_us / row.time_us.median) : "-",
      line_text(row.distance));
  if (!row.enqueue_us) return;
  table << fmt::format("# {} of {} bytes: rank 0's host enqueued a sample on the stream in {} us\n",
                       row.peer.empty() ? row.library : row.peer, row.bytes,
                       time_text(*row.enqueue_us));
}

const char* explain_time(P2pKind kind) {
  switch (kind) {
    case P2pKind::kLatency:
      return "half of a round trip; a sample is `window` round trips, one after the other";
    case P2pKind::kBandwidth:
    case P2pKind::kMessageRate:
      return "of a window of messages one way, until the last is acknowledged";
    case P2pKind::kBidirectional:
      return "of a window of messages each way at once; GB/s and messages of both ways together";
  }
  return "";
}

}  // namespace

std::string_view to_string(P2pLevel level) {
  switch (level) {
    case P2pLevel::kSegments:
      return "segments";
    case P2pLevel::kMessages:
      return "messages";
    case P2pLevel::kBoth:
      return "both";
    case P2pLevel::kLibrary:
      return "library";
  }
  return "?";
}

std::size_t window_of(const P2pRequest& request, std::size_t bytes) {
  if (request.window > 0) return static_cast<std::size_t>(request.window);
  if (request.kind == P2pKind::kLatency)
    return std::clamp<std::size_t>(kRowBytes / bytes, 1, kMostInRow);
  return std::clamp(kWindowBytes / bytes, kFewestInWindow, kMostInWindow);
}

double messages_per_second(const P2pRow& row) {
  if (row.time_us.median <= 0) return 0;
  if (row.kind == P2pKind::kLatency) return 1e6 / row.time_us.median;
  const double ways = row.kind == P2pKind::kBidirectional ? 2 : 1;
  return ways * static_cast<double>(row.window) / row.time_us.median * 1e6;
}

double bandwidth(const P2pRow& row) {
  return messages_per_second(row) * static_cast<double>(row.bytes) / 1e9;
}

std::string json_line(const P2pRow& p2p) {
  Row row;
  row.library = p2p.library;
  row.version = p2p.version;
  row.peer = p2p.peer;
  row.transport = p2p.transport;
  row.carrier = p2p.carrier;
  row.collective = fmt::format("p2p_{}", to_string(p2p.kind));
  row.algorithm = p2p.level;
  row.problem.collective = Collective::kMessage;
  row.problem.type = ElementType::kUint8;
  row.problem.is_in_place = false;
  row.ranks = 2;
  row.bytes = p2p.bytes;
  row.iterations = p2p.samples;
  row.left_out = p2p.left_out;
  row.time_us = p2p.time_us;
  row.pass_us = p2p.pass_us;
  row.wrong = p2p.wrong;
  row.distance = p2p.distance;
  row.segment_bytes = p2p.segment_bytes;
  row.device = p2p.device;
  row.limit_us = p2p.limit_us;
  row.enqueue_us = p2p.enqueue_us;
  auto line = nlohmann::ordered_json::parse(json_line(row));
  line["algbw_GBps"] = bandwidth(p2p);
  line["busbw_GBps"] = bandwidth(p2p);
  line["window"] = p2p.window;
  line["messages_per_s"] = messages_per_second(p2p);
  return line.dump();
}

std::vector<P2pRow> measure_p2p(RankGroup& group, const Arguments& arguments,
                                const std::vector<Pipe*>& pipes, std::size_t bytes,
                                RunLimit* limit) {
  P2pPassRequest turn;
  turn.kind = arguments.p2p.kind;
  turn.bytes = bytes;
  turn.window = window_of(arguments.p2p, bytes);
  turn.seconds = arguments.seconds / arguments.passes;
  turn.is_checked = arguments.is_checked;
  std::vector<Played> played(pipes.size());
  const std::size_t limits_seat = pipes.size();
  PassFilter regimes(pipes.size() + (limit != nullptr ? 1 : 0), arguments.iterations > 0);
  const auto end_turn = [&](std::size_t player) {
    regimes.took(player);
    const bool is_last = player + 1 == pipes.size();
    if (is_last || !regimes.keeps_all()) regimes.probe(group.cache_line_round_trip());
  };
  std::vector<std::optional<double>> limit_turns_us;
  regimes.probe(group.cache_line_round_trip());
  for (int pass = 0; regimes.goes_on(pass, arguments.passes); ++pass) {
    if (limit != nullptr) {
      limit_turns_us.push_back(limit->measure({turn.kind, turn.bytes, turn.window}));
      end_turn(limits_seat);
    }
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      play_pass(*pipes[i], turn, pass, arguments, group, played[i]);
      end_turn(i);
    }
  }
  const CoreDistance distance = regimes.distance();
  std::vector<P2pRow> rows;
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    P2pRow row = row_of(arguments, *pipes[i], bytes);
    const SelectedPasses counted = regimes.count(i, played[i].turns_us);
    row.samples = counted.times_us.size();
    row.left_out = counted.left_out;
    row.time_us = quantiles(counted.times_us);
    row.pass_us = counted.medians_us;
    row.distance = distance;
    row.enqueue_us = pipes[i]->take_enqueue_us();
    if (arguments.is_checked) row.wrong = played[i].wrong;
    rows.push_back(std::move(row));
  }
  const auto p10 = [](const P2pRow& row) { return row.time_us.p10; };
  const double quickest_us = p10(*std::ranges::min_element(rows, {}, p10));
  const auto limit_us = credible_limit(regimes.known(limits_seat, limit_turns_us), quickest_us);
  for (P2pRow& row : rows) row.limit_us = limit_us;
  return rows;
}

std::vector<std::unique_ptr<Pipe>> make_pipes(int rank, const Arguments& arguments,
                                              std::shared_ptr<Store> store,
                                              std::shared_ptr<DeviceMemory> device) {
  PipeRequest request{rank, store, arguments.transport, arguments.segment_bytes, arguments.timeout};
  request.device = device;
  const P2pLevel level = arguments.p2p.level;
  std::vector<std::unique_ptr<Pipe>> pipes;
  if (level != P2pLevel::kMessages) pipes.push_back(make_segment_pipe(request));
  if (level == P2pLevel::kMessages || level == P2pLevel::kBoth)
    pipes.push_back(make_message_pipe(request));
  if (level == P2pLevel::kLibrary) pipes.push_back(make_library_pipe(request));
  PipeRequest beside = request;
  beside.transport = pipes.front()->transport();  // "auto" is resolved now
  for (const std::string& peer : arguments.against) {
    beside.store = prefixed(store, fmt::format("peer/{}/", peer));
    pipes.push_back(make_peer_pipe(peer, beside));
  }
  if (device == nullptr) return pipes;
  for (auto& pipe : pipes) pipe = std::make_unique<PipeOnDevice>(std::move(pipe), device);
  return pipes;
}

std::uint64_t run_p2p(RankGroup& group, const Arguments& arguments,
                      const std::vector<std::unique_ptr<Pipe>>& pipes, std::ostream& table,
                      JsonLines& json, RunLimit* limit) {
  const Able able = find_able(arguments, pipes);
  const double cache_line_us = group.cache_line_round_trip();
  const bool prints = group.rank() == 0;
  if (prints) print_heading(arguments, able, cache_line_us, table);
  std::uint64_t wrong = 0;
  bool has_limits = false;
  LineNotes line_notes;
  for (const std::size_t bytes : sizes_of(arguments)) {
    std::vector<P2pRow> rows = measure_p2p(group, arguments, able.pipes, bytes, limit);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].peer = able.peers[i];
    for (const P2pRow& row : rows) {
      wrong += row.wrong.value_or(0);
      line_notes.add(row.distance, row.left_out);
      has_limits = has_limits || row.limit_us;
      if (!prints) continue;
      print(row, rows.front(), over_width(able.pipes), table);
      flush_or_throw(table, kTable);
      json.add(json_line(row));
    }
  }
  if (prints) {
    table << fmt::format("# time in us: {}\n", explain_time(arguments.p2p.kind));
    if (able.pipes.size() > 1) {
      table << fmt::format(
          "# ratio: the time over that of {}'s {} of the same size; above 1, "
          "kolo's are faster\n",
          able.pipes.front()->library(), able.pipes.front()->level());
    }
    if (has_limits) table << "# " << kOfLimit << '\n';
    for (const std::string& text : line_notes.texts()) table << "# " << text << '\n';
    flush_or_throw(table, kTable);
  }
  return wrong;
}

}  // namespace kolo::bench
