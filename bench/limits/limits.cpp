#include "bench/limits/limits.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <optional>

#include "bench/cli/sizes.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/cores.h"
#include "bench/output/report.h"
#include "bench/output/run_info.h"

namespace kolo::bench {
namespace {

constexpr int kLineRepeats = 15;
constexpr int kMoreRanks = 4;  // number of ranks of the shown bounds

// Times of a limit vary little, so a median beyond this factor of the 10th percentile is disturbed.
constexpr double kUneven = 3;

CoreDistance with_judgement(CoreDistance distance, const Quantiles& time_us) {
  if (time_us.median > kUneven * time_us.p10) distance.disturb();
  return distance;
}

class LimitReport {
 public:
  explicit LimitReport(const std::string& path)
      : json_(path), table_(path == "-" ? std::cerr : std::cout) {}

  void begin(bool is_quick) {
    table_ << fmt::format("# kolo-bench limits{}\n# {}; {}\n# {}\n",
                          is_quick ? " --quick: a trial, of fewer sizes and repeats" : "",
                          describe_machine(), surroundings_text(cache_line_round_trip()),
                          own_version());
    table_ << fmt::format("{:<22} {:<28} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}\n", "what", "how",
                          "size", "time us", "p10", "p90", "GB/s", "line");
    flush_or_throw(table_, kTable);
  }

  void end() {
    for (const std::string& text : line_notes_.texts()) table_ << "# " << text << '\n';
    flush_or_throw(table_, kTable);
  }

  void add(Limit limit) {
    limit.distance = with_judgement(limit.distance, limit.time_us);
    print(limit);
    nlohmann::ordered_json line;
    line["limit"] = limit.what;
    line["variant"] = limit.variant;
    line["bytes"] = limit.bytes;
    line["median_us"] = limit.time_us.median;
    line["p10_us"] = limit.time_us.p10;
    line["p90_us"] = limit.time_us.p90;
    line["GBps"] = limit.gigabytes_per_second;
    line["cache_line_us"] = limit.distance.cache_line_us();
    line["cache_line_probes_us"] = limit.distance.probes_us();
    line["regime"] = limit.distance.regime();
    line["run"] = run_info();
    json_.add(line.dump());
  }

  void add(Row row) {
    row.distance = with_judgement(row.distance, row.time_us);
    print({fmt::format("{}, {} {}", row.collective, row.ranks, row.transport), row.algorithm,
           row.bytes, row.time_us, algorithm_bandwidth(row).value_or(0), row.distance});
    json_.add(json_line(row));
  }

 private:
  void print(const Limit& limit) {
    line_notes_.add(limit.distance);
    table_ << fmt::format(
        "{:<22} {:<28} {:>10} {:>10.2f} {:>10.2f} {:>10.2f} {:>8} {:>9}\n", limit.what,
        limit.variant, format_bytes(limit.bytes), limit.time_us.median, limit.time_us.p10,
        limit.time_us.p90,
        limit.gigabytes_per_second > 0 ? fmt::format("{:.1f}", limit.gigabytes_per_second) : "-",
        line_text(limit.distance));
    flush_or_throw(table_, kTable);
  }

  JsonLines json_;
  std::ostream& table_;
  LineNotes line_notes_;
};

std::optional<Limit> line_limit() {
  std::vector<double> times;
  CoreDistance distance;
  for (int i = 0; i < kLineRepeats; ++i) {
    const double took = cache_line_round_trip();
    if (took <= 0) continue;
    times.push_back(took);
    distance.add(took);
  }
  if (times.empty()) return std::nullopt;
  return Limit{"cache line", "round trip, two cores", 64, quantiles(times), 0, distance};
}

// All-reduce of two ranks at every size, by each way over TCP. For the other collectives, and for
// four ranks, the fastest way at fewer sizes.
void add_floors(LimitReport& report, bool is_quick, bool over_shm, bool over_tcp) {
  const double seconds = is_quick ? 0.02 : 0.3;
  const std::size_t largest = (is_quick ? std::size_t{2} : std::size_t{256}) << 20;
  if (over_shm) {
    for (const std::size_t bytes : sweep(8, largest, 4, 8))
      report.add(shared_memory_floor({Collective::kAllReduce, 2, bytes}, seconds));
    for (const std::size_t bytes : sweep(8 * 1024, largest, 4, 8))
      report.add(shared_memory_floor({Collective::kAllReduce, 2, bytes, true}, seconds));
  }
  if (over_tcp) {
    for (const Row& row : tcp_all_reduce_floors(is_quick)) report.add(row);
  }
  for (const int ranks : {2, kMoreRanks}) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
          Collective::kAllToAll, Collective::kBroadcast, Collective::kReduce, Collective::kGather,
          Collective::kScatter, Collective::kScan, Collective::kExclusiveScan,
          Collective::kBarrier}) {
      const bool has_size = collective != Collective::kBarrier;
      const std::size_t most = ranks == 2 ? largest : largest / 4;
      for (const std::size_t bytes :
           has_size ? sweep(16, most, 16, 16) : std::vector<std::size_t>{0}) {
        const FloorRequest request{collective, ranks, bytes};
        const bool is_there = ranks == 2 && collective == Collective::kAllReduce;
        if (is_there || !has_floor(request)) continue;
        if (over_shm) report.add(shared_memory_floor(request, seconds));
        if (over_tcp) report.add(tcp_floor(request, seconds));
      }
    }
  }
}

}  // namespace

int run_limits(const Arguments& arguments) {
  LimitReport report(arguments.json);
  report.begin(arguments.is_quick);
  const bool has_two_cores = available_cores().size() > 1;
  const auto is_asked = [&](std::string_view part) {
    return arguments.limits.empty() || std::ranges::count(arguments.limits, part) > 0;
  };
  const bool needs_line = has_two_cores && is_asked("line");
  if (const auto line = needs_line ? line_limit() : std::nullopt) {
    report.add(*line);
  } else if (needs_line) {
    std::cerr
        << "kolo-bench: other programs keep the cores too busy for a cache line's round trip: it "
           "is left out, and the other rows are not reliable\n";
  }
  if (is_asked("memory")) {
    for (const Limit& limit : memory_limits(arguments.is_quick)) report.add(limit);
  }
  if (is_asked("tcp")) {
    for (const Limit& limit : tcp_round_trips()) report.add(limit);
  }
  const bool over_shm = is_asked("shm_floor");
  const bool over_tcp = is_asked("tcp_floor");
  if (has_two_cores) {
    if (is_asked("library")) {
      for (const Limit& limit : library_limits(arguments.is_quick)) report.add(limit);
    }
    add_floors(report, arguments.is_quick, over_shm, over_tcp);
  } else if (is_asked("library") || over_shm || over_tcp) {
    std::cerr << "kolo-bench: only one core to run on: bare libraries and the floors of two ranks "
                 "are left out\n";
  }
  report.end();
  return 0;
}

}  // namespace kolo::bench
