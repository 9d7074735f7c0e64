#include "bench/output/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "bench/cli/sizes.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/call_form.h"
#include "bench/measure/cores.h"
#include "bench/output/atomic_file.h"
#include "bench/output/run_info.h"
#include "bench/peers/peers.h"
#include "transports/error.h"
#include "transports/posix/descriptor.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kFewestForP99 = 100;
constexpr std::size_t kLeastBy = 18;  // width of the column `by`, equal in most tables

std::string first_text(const Row& row) { return row.first_us > 0 ? time_text(row.first_us) : "-"; }

nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nullptr;
}

// The fastest other library with right results; null if there is none, or only one peer.
const Row* best_peer(const std::vector<Row>& rows) {
  const Row* best = nullptr;
  int peers = 0;
  for (const Row& row : rows) {
    if (row.peer.empty() || row.library == rows.front().library) continue;
    ++peers;
    const bool is_right = row.wrong.value_or(0) == 0;
    if (is_right && (best == nullptr || row.time_us.median < best->time_us.median)) best = &row;
  }
  return peers > 1 ? best : nullptr;
}

// The columns from `time` on, equal for kolo and peers.
std::string figures_text(const Row& row) {
  return fmt::format("{:>7} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>5} {:>5}",
                     time_text(row.time_us.median), time_text(row.time_us.p10),
                     time_text(row.time_us.p90), p99_text(row.time_us.p99, row.iterations),
                     first_text(row), bandwidth_text(algorithm_bandwidth(row)),
                     bandwidth_text(bus_bandwidth(row)), wrong_text(row), row.iterations);
}

}  // namespace

std::string wrong_text(const Row& row) { return row.wrong ? fmt::format("{}", *row.wrong) : "-"; }

std::string time_text(double us) {
  if (us >= 9999.5) return fmt::format("{:.0f}", us);
  return us >= 99.95 ? fmt::format("{:.1f}", us) : fmt::format("{:.2f}", us);
}

std::string bandwidth_text(const std::optional<double>& gigabytes_per_second) {
  return gigabytes_per_second ? fmt::format("{:.2f}", *gigabytes_per_second) : "-";
}

// No probe means one rank or one core.
std::string line_text(const CoreDistance& distance) {
  const std::string_view regime = distance.regime();
  if (regime == "moved" || regime == "disturbed") return std::string(regime);
  const double us = distance.cache_line_us();
  return us > 0 ? fmt::format("{:.2f}", us) : "-";
}

void LineNotes::add(const CoreDistance& distance, std::size_t left_out) {
  const std::string text = line_text(distance);
  has_moved_ = has_moved_ || text == "moved";
  is_disturbed_ = is_disturbed_ || text == "disturbed";
  ++rows_;
  if (left_out > 0) ++rows_in_part_;
}

std::vector<std::string> LineNotes::texts() const {
  std::vector<std::string> notes;
  if (rows_in_part_ > 0)
    notes.push_back(fmt::format(
        "{} of {} {} made of the passes at the distance in `line` only: the cores moved "
        "meanwhile, or another program had one",
        rows_in_part_, format_count(rows_, "row"), rows_in_part_ == 1 ? "is" : "are"));
  if (has_moved_)
    notes.emplace_back(
        "line moved: the cores moved while that row was measured; do not compare it");
  if (is_disturbed_)
    notes.emplace_back(
        "line disturbed: another program had a core while that row was measured; do not compare "
        "it");
  return notes;
}

std::string p99_text(double us, std::size_t iterations) {
  return iterations < kFewestForP99 ? "-" : time_text(us);
}

std::string round_trip_text(double cache_line_us) {
  if (is_disturbed(cache_line_us))
    return "a cache line's round trip is not known: another program had a core (disturbed)";
  if (cache_line_us > 0)
    return fmt::format("a cache line's round trip {:.2f} us ({})", cache_line_us,
                       regime(cache_line_us));
  return available_cores().size() < 2 ? "one core: no cache line's round trip"
                                      : "a cache line's round trip is not known: one rank, or "
                                        "other programs keep the cores busy";
}

std::string surroundings_text(double cache_line_us) {
  const std::string text = round_trip_text(cache_line_us);
  const std::string network = network_between_ranks();
  return network.empty() ? text : fmt::format("{}; a network of {}", text, network);
}

std::string costs_warning(const CoreDistance& distance) {
  const std::string_view regime = distance.regime();
  if (regime == "disturbed")
    return "another program had a core while the costs were measured: predictions and choices by "
           "them are not reliable";
  if (regime == "moved")
    return "the cores moved while the costs were measured: predictions and choices by them are not "
           "reliable";
  return "";
}

std::string ranks_text(int ranks, std::string_view transport, const std::string& carrier) {
  return fmt::format("{} over {}{}", format_count(static_cast<std::size_t>(ranks), "rank"),
                     transport, carrier.empty() ? "" : fmt::format(" ({})", carrier));
}

std::string servers_text(const Problem& problem) {
  if (!has_servers(problem.collective)) return "";
  if (problem.servers == 0) return ", each of them a server";
  return ", " + format_count(static_cast<std::size_t>(problem.servers), "server") + " among them";
}

std::string mode_text(Reproducibility mode) {
  return mode == Reproducibility::kFast ? ""
                                        : fmt::format(", results that are {}", to_string(mode));
}

std::string iterations_text(const Arguments& arguments) {
  const int each = std::max(1, arguments.iterations / arguments.passes);
  const int all = each * arguments.passes;
  if (arguments.iterations == 0 || all == arguments.iterations) return "";
  return fmt::format("--iterations {}: {} in each of {} passes, {} in all", arguments.iterations,
                     each, arguments.passes, all);
}

std::string whole_sizes_text(const Arguments& arguments) {
  constexpr int kMostNamed = 3;
  const Problem& problem = arguments.problem;
  const std::size_t granule = granule_of(problem, arguments.ranks);
  std::string text;
  int named = 0;
  for (const std::size_t asked : asked_sizes(arguments)) {
    const std::size_t measured = whole(asked, granule);
    if (measured == asked || ++named > kMostNamed) continue;
    text += fmt::format("{}{} {}as {}", named == 1 ? "" : ", ", asked,
                        named == 1 ? "is measured " : "", measured);
  }
  if (text.empty()) return "";
  const bool has_shares = granule != element_bytes(problem.type);
  return fmt::format("sizes are multiples of {} bytes ({}{}): {}{}", granule,
                     to_string(problem.type),
                     has_shares ? fmt::format(" for each of {} ranks", arguments.ranks) : "", text,
                     named > kMostNamed ? " and so on" : "");
}

std::size_t width_of(std::span<const std::string> words, std::size_t least) {
  std::size_t width = least;
  for (const std::string& word : words) width = std::max(width, word.size());
  return width;
}

std::size_t over_width(const std::vector<std::string>& transports) {
  constexpr std::size_t kLeast = 6;
  return width_of(transports, kLeast);
}

std::size_t by_width(Collective collective, const std::string& algorithm, std::size_t least) {
  std::vector<std::string> names = {algorithm};
  if (algorithm.empty()) {
    for (const std::string_view name : algorithm_names(collective)) names.emplace_back(name);
  }
  return width_of(names, least);
}

std::string peer_over(const std::string& peer, const std::string& transport,
                      const std::string& own) {
  return transport == own ? peer : fmt::format("{} (over {})", peer, transport);
}

std::string ratio_text(double ratio) {
  const int digits = ratio < 99.995 ? 2 : (ratio < 999.95 ? 1 : 0);
  return fmt::format("{:.{}f}", ratio, digits);
}

// The call form; empty for blocking calls.
std::string form_text(CallForm form) {
  return form == CallForm::kBlocking ? "" : fmt::format(", {}", to_string(form));
}

std::string type_text(const Row& row) {
  return row.problem.collective == Collective::kBarrier ? "-"
                                                        : std::string(to_string(row.problem.type));
}

std::string op_text(const Row& row) {
  return is_reduction(row.problem.collective) ? std::string(to_string(row.problem.op)) : "-";
}

std::vector<std::string> enqueue_lines(const std::vector<Row>& rows) {
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    if (!row.enqueue_us) continue;
    lines.push_back(fmt::format("{} of {} bytes: rank 0's host enqueued it on the stream in {} us",
                                name_of(row), row.bytes, time_text(*row.enqueue_us)));
  }
  return lines;
}

void flush_or_throw(std::ostream& out, const std::string& where) {
  errno = 0;
  out << std::flush;
  if (out) return;
  const std::string why = errno != 0 ? posix::error_text(errno) : "the stream has failed";
  throw Error(ErrorCode::kSystem, kNoPeer, fmt::format("{}: cannot write: {}", where, why));
}

std::string json_line(const Row& row) {
  nlohmann::ordered_json line;
  line["library"] = row.library;
  line["transport"] = row.transport;
  line["collective"] = row.collective;
  line["algorithm"] = row.algorithm;
  line["ranks"] = row.ranks;
  line["bytes"] = row.bytes;
  line["iterations"] = row.iterations;
  line["median_us"] = row.time_us.median;
  line["p10_us"] = row.time_us.p10;
  line["p90_us"] = row.time_us.p90;
  line["algbw_GBps"] = or_null(algorithm_bandwidth(row));
  line["busbw_GBps"] = or_null(bus_bandwidth(row));
  line["wrong"] = row.wrong ? nlohmann::ordered_json(*row.wrong) : nlohmann::ordered_json();
  line["type"] = type_text(row);
  line["op"] = op_text(row);
  line["form"] = to_string(row.form);
  line["in_place"] = row.problem.is_in_place;
  line["servers"] = row.problem.servers;
  line["reproducibility"] = to_string(row.reproducibility);
  line["segment_bytes"] = row.segment_bytes;
  if (row.is_memory_its_own) line["memory"] = "allocated";
  if (!row.device.empty()) {
    line["memory"] = "cuda";
    line["device"] = row.device;
    line["enqueue_us"] = or_null(row.enqueue_us);
  }
  if (!row.peer.empty()) line["peer"] = row.peer;
  if (!row.carrier.empty()) line["carrier"] = row.carrier;
  if (const std::string network = network_between_ranks(); !network.empty())
    line["network"] = network;
  line["pass_us"] = row.pass_us;
  line["cache_line_us"] = row.distance.cache_line_us();
  line["cache_line_probes_us"] = row.distance.probes_us();
  line["regime"] = row.distance.regime();
  line["left_out"] = row.left_out;
  line["p99_us"] = row.time_us.p99;
  if (row.average_us > 0) line["average_us"] = row.average_us;
  line["first_us"] = row.first_us > 0 ? nlohmann::ordered_json(row.first_us) : nullptr;
  line["limit_us"] = or_null(row.limit_us);
  if (!row.profiles.empty()) line["profile"] = profile_json(row.profiles);
  line["version"] = row.version;
  line["run"] = run_info();
  return line.dump();
}

JsonLines::JsonLines(const std::string& path) : path_(path) {
  if (path.empty()) return;
  if (path == "-") {
    out_ = &std::cout;
    return;
  }
  errno = 0;
  file_.open(path, std::ios::app);
  if (!file_) {
    throw std::invalid_argument(fmt::format("--json {}: cannot write there: {}", path,
                                            errno != 0 ? std::strerror(errno) : "unknown why"));
  }
  out_ = &file_;
}

void warn_about_existing_rows(const std::string& json) {
  if (json.empty() || json == "-" || !holds_something(json)) return;
  std::cerr << fmt::format("kolo-bench: --json {}: the file is not empty; the rows are appended\n",
                           json);
}

void JsonLines::add(const std::string& line) {
  if (out_ == nullptr) return;
  *out_ << line << '\n';
  flush_or_throw(*out_, "--json " + path_);
}

Report::Report(const Arguments& arguments, std::ostream& table, JsonLines& json)
    : arguments_(arguments), table_(table), json_(json) {}

void Report::begin(const Library& own, double cache_line_us,
                   const std::vector<std::string>& versions, const std::vector<std::string>& peers,
                   const std::vector<std::string>& cautions) {
  table_ << fmt::format(
      "# kolo-bench {}: {}{}, {}{}{}\n", arguments_.command,
      ranks_text(arguments_.ranks, own.transport(), own.carrier()),
      servers_text(arguments_.problem),
      arguments_.problem.is_in_place ? "in place" : "out of place",
      (arguments_.is_memory_its_own ? ", in allocated memory" : "") + form_text(arguments_.form) +
          mode_text(arguments_.reproducibility),
      peers.empty() ? "" : fmt::format(", in turn with {}", fmt::join(peers, ", ")));
  table_ << fmt::format("# {}; {}\n", describe_machine(), surroundings_text(cache_line_us));
  note(fmt::format("{}", fmt::join(versions, "; ")));
  if (const std::string device = own.device(); !device.empty())
    note("buffers are memory of " + device +
         "; a call's time is until the host sees its stream's end");
  if (!arguments_.without_meaning.empty()) {
    note(fmt::format("{} has no use for {}", arguments_.command,
                     fmt::join(arguments_.without_meaning, ", ")));
  }
  if (const std::string text = iterations_text(arguments_); !text.empty()) note(text);
  if (const std::string text = whole_sizes_text(arguments_); !text.empty()) note(text);
  for (const std::string& peer : arguments_.no_peers) leave_out(peer, why_left_out(peer));
  for (const std::string& caution : cautions) note(caution);
  table_ << "# time in us: the longest over the ranks after a barrier; median, 10th, 90th and 99th "
            "percentile of the iterations; first: the first call\n";
  widths_ = {std::string_view(to_string(arguments_.problem.type)).size(),
             std::string_view(to_string(arguments_.problem.op)).size(),
             over_width({own.transport()}),
             by_width(arguments_.problem.collective, arguments_.algorithm, kLeastBy)};
  widths_.type = std::max(widths_.type, std::string_view("type").size());
  widths_.by = width_of(arguments_.against, widths_.by);
  table_ << heading();
  flush_or_throw(table_, kTable);
}

std::string Report::heading() const {
  return fmt::format(
      "#{:>10} {:>10} {:>{}} {:>{}} {:>{}} {:>{}} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>5} "
      "{:>5} | {:>7} {:>8} {:>9}\n",
      "bytes", "count", "type", widths_.type, "op", widths_.op, "over", widths_.over, "by",
      widths_.by, "time", "p10", "p90", "p99", "first", "algbw", "busbw", "wrong", "iter", "limit",
      "of limit", "line");
}

std::string Report::own_line(const Row& row, const char* mark) const {
  return fmt::format(
      "{:>11} {:>10} {:>{}} {:>{}} {:>{}} {:>{}} {} | {:>7} {:>8} {:>9}{}\n", row.bytes,
      row.problem.count, type_text(row), widths_.type, op_text(row), widths_.op, row.transport,
      widths_.over, row.algorithm, widths_.by, figures_text(row),
      row.limit_us ? time_text(*row.limit_us) : "-",
      row.limit_us ? fmt::format("{:.0f} %", 100 * *row.limit_us / row.time_us.median) : "-",
      line_text(row.distance), mark);
}

std::string Report::peer_line(const Row& own, const Row& row, bool is_best) const {
  return fmt::format("{:>11} {:>10} {:>{}} {:>{}} {:>{}} {:>{}} {} | {:>7} {:>8}{}\n", "", "", "",
                     widths_.type, "", widths_.op, row.transport, widths_.over, row.peer,
                     widths_.by, figures_text(row),
                     ratio_text(row.time_us.median / own.time_us.median) + "x", "ratio",
                     is_best ? " best peer" : "");
}

void Report::add_alternatives(const std::vector<Row>& rows) {
  const auto fastest =
      std::ranges::min_element(rows, {}, [](const Row& row) { return row.time_us.median; });
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    add({*row}, row == fastest ? "  fastest" : "");
  }
}

void Report::add(const std::vector<Row>& rows, const char* mark) {
  const Row& own = rows.front();
  table_ << own_line(own, mark);
  const Row* best = best_peer(rows);
  for (const Row& row : rows) {
    if (row.peer.empty()) continue;
    table_ << peer_line(own, row, &row == best);
    has_ratios_ = true;
  }
  has_limits_ = has_limits_ || own.limit_us;
  constexpr double kBeyondNoise = 1.05;
  has_beaten_limits_ =
      has_beaten_limits_ || (own.limit_us && *own.limit_us > kBeyondNoise * own.time_us.median);
  flush_or_throw(table_, kTable);
  for (const Row& row : rows) {
    json_.add(json_line(row));
    if (row.wrong.value_or(0) > 0) wrong_by_[name_of(row)] += *row.wrong;
  }
  line_notes_.add(own.distance, own.left_out);
  const bool counts =
      !arguments_.is_by_all || *mark != '\0';  // of several algorithms only the fastest
  if (const auto busbw = bus_bandwidth(own); busbw && counts) {
    bus_sum_ += *busbw;
    ++moving_rows_;
  }
}

void Report::note(const std::string& text) {
  table_ << "# " << text << '\n';
  flush_or_throw(table_, kTable);
}

void Report::leave_out(const std::string& library, const std::string& objection) {
  const std::string text = fmt::format("{} left out: {}", library, objection);
  if (left_out_.insert(text).second) note(text);
}

std::uint64_t Report::end() {
  if (has_ratios_) note("ratio: the peer's time over kolo's; above 1, kolo is faster");
  if (has_limits_) {
    note(
        "of limit: the least time that the machine needs, measured in turn, over kolo's time; -: "
        "not known, or other programs had the cores");
  }
  if (has_beaten_limits_) {
    note(
        "above 100 %: kolo was faster than the program that measures the limit, so it is not "
        "a limit there (bench/README.md)");
  }
  for (const std::string& text : line_notes_.texts()) note(text);
  std::uint64_t wrong = 0;
  for (const auto& [library, count] : wrong_by_) {
    wrong += count;
    note(fmt::format("{}: {} {} wrong", library, format_count(count, "element"),
                     count == 1 ? "is" : "are"));
  }
  note(fmt::format(
      "{}; {} wrong",
      moving_rows_ > 0
          ? fmt::format("average bus bandwidth of kolo's {}: {:.3f} GB/s",
                        format_count(static_cast<std::size_t>(moving_rows_),
                                     arguments_.is_by_all ? "fastest row" : "row"),
                        bus_sum_ / moving_rows_)
          : fmt::format("no bandwidth: {}",
                        arguments_.ranks == 1 ? "one rank sends nothing" : "no bytes are moved"),
      arguments_.is_checked ? fmt::format("{}", wrong) : "not checked, so unknown how many"));
  return wrong;
}

}  // namespace kolo::bench
