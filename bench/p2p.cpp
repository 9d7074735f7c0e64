#include "bench/p2p.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "bench/arguments.h"
#include "bench/cache_line.h"
#include "bench/cores.h"
#include "bench/measure.h"
#include "bench/meeting.h"
#include "bench/pattern.h"
#include "bench/report.h"
#include "bench/sizes.h"
#include "bench/statistics.h"

namespace kolo::bench {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kMostInRow = 16;  // round trips of a latency's sample
constexpr std::size_t kMostInWindow = 64;
constexpr std::size_t kFewestInWindow = 4;
constexpr std::size_t kRowBytes = std::size_t{64} << 10;
constexpr std::size_t kWindowBytes = std::size_t{16} << 20;
constexpr std::size_t kFewestSamples = 2;
constexpr std::size_t kMostSamples = 2000;  // of a pass
constexpr std::size_t kAcknowledgement = 8;

// The messages of one size, and the game that is played with them.
class Game {
 public:
  Game(Meeting& meeting, const Arguments& arguments, std::size_t bytes)
      : meeting_(meeting),
        arguments_(arguments),
        bytes_(bytes),
        window_(window_of(arguments.p2p, bytes)),
        given_(bytes_ * window_),
        taken_(bytes_ * window_) {}

  // One sample of `pipe`, in microseconds; 0 at a rank that takes no time.
  double sample(Pipe& pipe) {
    ++salt_;
    switch (arguments_.p2p.kind) {
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

  std::size_t window() const { return window_; }
  // Since it was asked last.
  std::uint64_t take_wrong() { return std::exchange(wrong_, 0); }

 private:
  int rank() const { return meeting_.rank(); }
  Messages all(std::vector<std::byte>& memory) const { return {memory.data(), bytes_, window_}; }
  Messages one(std::vector<std::byte>& memory, std::size_t index) const {
    return {memory.data() + index * bytes_, bytes_, 1};
  }
  Pattern pattern() const { return {ElementType::kUint8, ReduceOp::kSum, 1, salt_}; }
  void fill_given() { fill(given_.data(), 0, given_.size(), rank(), pattern()); }
  void check_taken(int giver) {
    if (!arguments_.is_checked) return;
    wrong_ += count_wrong_copies(taken_.data(), 0, taken_.size(), giver, pattern());
  }

  // The peer sends back what it got, so that what went wrong on either way shows here.
  double there_and_back(Pipe& pipe) {
    fill_given();
    meeting_.wait();
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < window_; ++i) {
      pipe.exchange(one(given_, i), {});
      pipe.exchange({}, one(taken_, i));
    }
    const Microseconds time = Clock::now() - begin;
    check_taken(0);
    return time.count() / 2 / static_cast<double>(window_);
  }

  double back(Pipe& pipe) {
    meeting_.wait();
    for (std::size_t i = 0; i < window_; ++i) {
      pipe.exchange({}, one(taken_, i));
      pipe.exchange(one(taken_, i), {});
    }
    return 0;
  }

  double give_window(Pipe& pipe) {
    fill_given();
    meeting_.wait();
    const auto begin = Clock::now();
    pipe.exchange(all(given_), {});
    pipe.exchange({}, {acknowledgement_, kAcknowledgement, 1});
    const Microseconds time = Clock::now() - begin;
    if (arguments_.is_checked)
      wrong_ += count_wrong_copies(acknowledgement_, 0, kAcknowledgement, 1, pattern());
    return time.count();
  }

  double take_window(Pipe& pipe) {
    fill(acknowledgement_, 0, kAcknowledgement, rank(), pattern());
    meeting_.wait();
    pipe.exchange({}, all(taken_));
    pipe.exchange({acknowledgement_, kAcknowledgement, 1}, {});
    check_taken(0);
    return 0;
  }

  double both_ways(Pipe& pipe) {
    fill_given();
    meeting_.wait();
    const auto begin = Clock::now();
    pipe.exchange(all(given_), all(taken_));
    const Microseconds time = Clock::now() - begin;
    check_taken(1 - rank());
    return time.count();
  }

  Meeting& meeting_;
  const Arguments& arguments_;
  std::size_t bytes_;
  std::size_t window_;
  std::vector<std::byte> given_;
  std::vector<std::byte> taken_;
  std::byte acknowledgement_[kAcknowledgement] = {};
  std::uint32_t salt_ = 0;
  std::uint64_t wrong_ = 0;
};

// Plays a few times, and says how often a pass shall: as often as asked for, or as fits its time.
std::size_t warm_up(Game& game, Meeting& meeting, const Arguments& arguments, Pipe& pipe) {
  double quickest = std::numeric_limits<double>::max();
  for (int i = 0; i < std::max(1, arguments.warmup); ++i) {
    const auto begin = Clock::now();
    game.sample(pipe);
    quickest = std::min(quickest, Microseconds(Clock::now() - begin).count());
  }
  const auto passes = static_cast<std::size_t>(arguments.passes);
  const auto asked = static_cast<std::size_t>(arguments.iterations);
  if (asked > 0) return std::min(std::max<std::size_t>(1, asked / passes), kMostIterations);
  const double fitting = arguments.seconds * 1e6 / arguments.passes / meeting.largest(quickest);
  return std::clamp(static_cast<std::size_t>(fitting), kFewestSamples, kMostSamples);
}

P2pRow row_of(const Arguments& arguments, const Pipe& pipe, std::size_t bytes, std::size_t window,
              const std::vector<double>& times) {
  P2pRow row;
  row.kind = arguments.p2p.kind;
  row.level = pipe.level();
  row.transport = pipe.transport();
  row.bytes = bytes;
  row.window = window;
  row.samples = times.size();
  row.segment_bytes = arguments.segment_bytes;
  row.time_us = quantiles(times);
  return row;
}

std::string wrong_text(const P2pRow& row) {
  return row.wrong ? fmt::format("{}", *row.wrong) : "-";
}

void print_heading(const Arguments& arguments, double cache_line_us, std::ostream& table) {
  table << fmt::format("# kolo-bench p2p {}: 2 ranks over {}\n# {}; {}\n",
                       to_string(arguments.p2p.kind), arguments.transport, describe_machine(),
                       surroundings_text(cache_line_us));
  table << fmt::format(
      "#{:>10} {:>7} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7} {:>8} {:>6} {:>7} "
      "{:>9}\n",
      "bytes", "window", "level", "over", "time", "p10", "p90", "p99", "GB/s", "Mmsg/s", "wrong",
      "samples", "line");
}

void print(const P2pRow& row, std::ostream& table) {
  table << fmt::format(
      " {:>10} {:>7} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7.2f} {:>8.3f} {:>6} {:>7} {:>9}\n",
      row.bytes, row.window, row.level, row.transport, time_text(row.time_us.median),
      time_text(row.time_us.p10), time_text(row.time_us.p90),
      p99_text(row.time_us.p99, row.samples), bandwidth(row), messages_per_second(row) / 1e6,
      wrong_text(row), row.samples, line_text(row.distance));
}

const char* explain_time(P2pKind kind) {
  switch (kind) {
    case P2pKind::kLatency:
      return "half of a round trip; each waits for the one before, `window` of them to a sample";
    case P2pKind::kBandwidth:
    case P2pKind::kMessageRate:
      return "of a window of messages one way, until the word that the last has come";
    case P2pKind::kBidirectional:
      return "of a window of messages each way at once; GB/s and messages of both ways together";
  }
  return "";
}

}  // namespace

std::string_view to_string(P2pKind kind) {
  switch (kind) {
    case P2pKind::kLatency:
      return "latency";
    case P2pKind::kBandwidth:
      return "bandwidth";
    case P2pKind::kBidirectional:
      return "bidirectional";
    case P2pKind::kMessageRate:
      return "message-rate";
  }
  return "?";
}

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
  row.library = "kolo";
  row.transport = p2p.transport;
  row.collective = fmt::format("p2p_{}", to_string(p2p.kind));
  row.algorithm = p2p.level;
  row.problem.collective = Collective::kMessage;
  row.problem.type = ElementType::kUint8;
  row.problem.is_in_place = false;
  row.ranks = 2;
  row.bytes = p2p.bytes;
  row.iterations = p2p.samples;
  row.time_us = p2p.time_us;
  row.pass_us = p2p.pass_us;
  row.wrong = p2p.wrong;
  row.distance = p2p.distance;
  row.segment_bytes = p2p.segment_bytes;
  auto line = nlohmann::ordered_json::parse(json_line(row));
  line["algbw_GBps"] = bandwidth(p2p);
  line["busbw_GBps"] = bandwidth(p2p);
  line["window"] = p2p.window;
  line["messages_per_s"] = messages_per_second(p2p);
  return line.dump();
}

std::vector<P2pRow> measure_p2p(Meeting& meeting, const Arguments& arguments,
                                const std::vector<Pipe*>& pipes, std::size_t bytes) {
  Game game(meeting, arguments, bytes);
  std::vector<std::vector<double>> times(pipes.size());
  std::vector<std::uint64_t> wrong(pipes.size());
  std::vector<std::size_t> samples(pipes.size());
  std::vector<std::vector<double>> medians(pipes.size());
  Distance distance;
  for (int turn = 0; turn < arguments.passes; ++turn) {
    distance.add(meeting.cache_line_round_trip());
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (turn == 0) {
        samples[i] = warm_up(game, meeting, arguments, *pipes[i]);
      } else {
        game.sample(*pipes[i]);  // not counted: the other pipe has had its turn
      }
      std::vector<double> more;
      more.reserve(samples[i]);
      for (std::size_t k = 0; k < samples[i]; ++k) more.push_back(game.sample(*pipes[i]));
      more = meeting.largest(more);
      times[i].insert(times[i].end(), more.begin(), more.end());
      medians[i].push_back(quantile(more, 0.5));
      wrong[i] += meeting.sum(game.take_wrong());
    }
  }
  distance.add(meeting.cache_line_round_trip());
  std::vector<P2pRow> rows;
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    rows.push_back(row_of(arguments, *pipes[i], bytes, game.window(), times[i]));
    rows.back().pass_us = medians[i];
    rows.back().distance = distance;
    if (arguments.is_checked) rows.back().wrong = wrong[i];
  }
  return rows;
}

std::vector<std::unique_ptr<Pipe>> make_pipes(int rank, const Arguments& arguments,
                                              std::shared_ptr<Store> store) {
  const PipeRequest request{rank, std::move(store), arguments.transport, arguments.segment_bytes,
                            arguments.timeout};
  const P2pLevel level = arguments.p2p.level;
  std::vector<std::unique_ptr<Pipe>> pipes;
  if (level != P2pLevel::kMessages) pipes.push_back(make_segment_pipe(request));
  if (level == P2pLevel::kMessages || level == P2pLevel::kBoth)
    pipes.push_back(make_message_pipe(request));
  if (level == P2pLevel::kLibrary) pipes.push_back(make_library_pipe(request));
  return pipes;
}

std::uint64_t run_p2p(Meeting& meeting, const Arguments& arguments,
                      const std::vector<std::unique_ptr<Pipe>>& pipes, std::ostream& table,
                      JsonLines& json) {
  std::vector<Pipe*> all;
  for (const auto& pipe : pipes) all.push_back(pipe.get());
  const double cache_line_us = meeting.cache_line_round_trip();
  const bool prints = meeting.rank() == 0;
  if (prints) print_heading(arguments, cache_line_us, table);
  std::uint64_t wrong = 0;
  LineNotes line_notes;
  for (const std::size_t bytes :
       sweep(arguments.min_bytes, arguments.max_bytes, arguments.factor, 1)) {
    for (const P2pRow& row : measure_p2p(meeting, arguments, all, bytes)) {
      wrong += row.wrong.value_or(0);
      line_notes.add(row.distance);
      if (!prints) continue;
      print(row, table);
      flush_or_throw(table, kTable);
      json.add(json_line(row));
    }
  }
  if (prints) {
    table << fmt::format("# time in us: {}\n", explain_time(arguments.p2p.kind));
    for (const std::string& text : line_notes.texts()) table << "# " << text << '\n';
    flush_or_throw(table, kTable);
  }
  return wrong;
}

}  // namespace kolo::bench
