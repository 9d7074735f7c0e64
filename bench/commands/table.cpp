#include "bench/commands/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <utility>

#include "bench/cli/arguments.h"
#include "bench/cli/ranks.h"
#include "bench/cli/sizes.h"
#include "bench/commands/job_rows.h"
#include "bench/commands/table_points.h"
#include "bench/commands/table_text.h"
#include "bench/output/job_progress.h"
#include "bench/output/plot_script.h"
#include "bench/output/report.h"
#include "transports/posix/host/cgroup.h"
#include "transports/posix/whole_file.h"

namespace kolo::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kFailed = 1;
constexpr int kWrongResults = 3;
constexpr int kPasses = 4;
constexpr std::size_t kPassBytes = 100'000'000;  // that a rank reduces in a pass, about
constexpr int kMostPerPass = 25;
constexpr int kFewestPerPass = 2;
constexpr double kStartBytes = 3e8;  // a job's start and end take as long as so many bytes

constexpr const char* kCharts =
    "\n![time](allreduce_table_time.png)\n\n![bandwidth](allreduce_table_bandwidth.png)\n";

struct Outcome {
  std::vector<TableEntry> entries;
  int exit_code = 0;
  std::string incomplete;  // why the command ended early; empty: it did not
};

std::size_t memory_left() {
  const std::size_t machine = posix::available_memory();
  const auto group = posix::cgroup_memory();
  return group ? std::min(machine, group->free) : machine;
}

// The expected duration of a point, in bytes written, reduced and checked.
double weight_of(const TableRequest& request, const TableKey& key) {
  const Turns turns = turns_of(key.bytes, request.iterations);
  const auto libraries = static_cast<double>(1 + request.against.size());
  return kStartBytes +
         libraries * (turns.iterations + turns.passes) * key.ranks * static_cast<double>(key.bytes);
}

// Measures a point, and fills its rows. Returns the job's exit code. An exception is reported, and
// is kFailed.
int measure(const TableRequest& request, TablePoint& point) {
  try {
    const JobRows rows;
    std::vector<std::string> words = point_command(request, point.key);
    words.insert(words.end(), {kPointsFlag, rows.path()});
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    const auto count = static_cast<int>(pointers.size());
    Arguments job;
    parse_arguments(count, pointers.data(), job);
    const int code = run_collective(job, count, pointers.data());
    point.rows = rows.read();
    return code;
  } catch (const std::exception& error) {
    std::cerr << "kolo-bench: " << error.what() << '\n';
    return kFailed;
  }
}

class TableRun {
 public:
  TableRun(const TableRequest& request, TablePoints& points)
      : request_(request), points_(points), progress_(stderr, weights()) {}

  Outcome run() {
    Outcome outcome;
    for (const TableKey& key : keys_of(request_)) {
      std::string why_missing = "not measured yet";
      if (!is_finished(key) && outcome.incomplete.empty())
        why_missing = measure_point(key, outcome);
      outcome.entries.push_back({key, nullptr, why_missing});
    }
    for (TableEntry& entry : outcome.entries) entry.point = points_.find(entry.key);
    return outcome;
  }

 private:
  // Points with wrong results are measured again.
  bool is_finished(const TableKey& key) const {
    const TablePoint* point = points_.find(key);
    return point != nullptr && wrong_of(*point) == 0;
  }

  std::vector<double> weights() const {
    std::vector<double> weights;
    for (const TableKey& key : keys_of(request_)) {
      if (!is_finished(key)) weights.push_back(weight_of(request_, key));
    }
    return weights;
  }

  // Returns "" if the point is measured now; otherwise the reason why it is not.
  std::string measure_point(const TableKey& key, Outcome& outcome) {
    const std::string name = to_string(key);
    if (const std::string why = why_no_memory(key, memory_left()); !why.empty()) {
      progress_.skip(name, why);
      return "skipped: " + why;
    }
    progress_.begin(name);
    TablePoint point{key, {}};
    const int code = measure(request_, point);
    if ((code != 0 && code != kWrongResults) || point.rows.empty())
      return fail(outcome, code != 0 ? code : kFailed, name + " did not succeed");
    const bool is_wrong = code == kWrongResults;
    if (is_wrong) outcome.exit_code = kWrongResults;
    progress_.end(name, medians_text(point) + (is_wrong ? ", with WRONG results" : ""));
    try {
      points_.add(std::move(point));
    } catch (const std::exception& error) {  // the table still has the points so far
      std::cerr << "kolo-bench: " << error.what() << '\n';
      return fail(outcome, kFailed, name + " cannot be stored");
    }
    return "";
  }

  static std::string fail(Outcome& outcome, int exit_code, const std::string& why) {
    outcome.exit_code = exit_code;
    outcome.incomplete = why;
    return "failed";
  }

  const TableRequest& request_;
  TablePoints& points_;
  JobProgress progress_;
};

std::string in_folder(const TableRequest& request, const char* name) {
  return (fs::path(request.out) / name).string();
}

// Writes and prints the table, and draws the charts of a complete one.
void publish(const TableRequest& request, const Outcome& outcome) {
  const std::string text = table_text(request, outcome.entries, outcome.incomplete);
  std::string rows;
  for (const TableEntry& entry : outcome.entries) {
    if (entry.point == nullptr) continue;
    for (const auto& row : entry.point->rows) rows += row.dump() + "\n";
  }
  const std::string rows_file = in_folder(request, "rows.jsonl");
  posix::write_whole(rows_file, rows);
  posix::write_whole(in_folder(request, "table.md"), text);
  std::cout << text << '\n' << in_folder(request, "table.md") << '\n' << rows_file << '\n';
  flush_or_throw(std::cout, kTable);
  if (rows.empty() || !outcome.incomplete.empty()) return;
  if (run_plot({"--table", "--out", request.out, rows_file})) {
    posix::write_whole(in_folder(request, "table.md"), text + kCharts);
  } else {
    std::cerr << fmt::format(
        "kolo-bench: no charts; to try again: kolo-bench plot --table {} --out {}\n", rows_file,
        request.out);
  }
}

}  // namespace

std::vector<TableKey> keys_of(const TableRequest& request) {
  std::vector<TableKey> keys;
  for (const std::string& transport : request.transports) {
    for (const int ranks : request.ranks) {
      for (const std::size_t bytes : request.sizes) keys.push_back({transport, ranks, bytes});
    }
  }
  return keys;
}

std::string to_string(const TableKey& key) {
  return fmt::format("{} over {}, {}", format_count(static_cast<std::size_t>(key.ranks), "rank"),
                     key.transport, format_decimal_bytes(key.bytes));
}

Turns turns_of(std::size_t bytes, int asked) {
  if (asked > 0) return {asked, std::min(asked, kPasses)};
  const int passes = bytes > kPassBytes ? kPasses / 2 : kPasses;
  const std::size_t fitting = std::min<std::size_t>(kPassBytes / bytes, kMostPerPass);
  return {std::max(static_cast<int>(fitting), kFewestPerPass) * passes, passes};
}

std::vector<std::string> point_command(const TableRequest& request, const TableKey& key) {
  const Turns turns = turns_of(key.bytes, request.iterations);
  std::vector<std::string> words = {"kolo-bench",   "allreduce",
                                    "--ranks",      fmt::format("{}", key.ranks),
                                    "--transport",  key.transport,
                                    "--bytes",      fmt::format("{}", key.bytes),
                                    "--iterations", fmt::format("{}", turns.iterations),
                                    "--passes",     fmt::format("{}", turns.passes),
                                    "--warmup",     "1",
                                    "--timeout",    fmt::format("{}", request.timeout_s)};
  if (!request.against.empty())
    words.insert(words.end(), {"--against", fmt::format("{}", fmt::join(request.against, ","))});
  return words;
}

std::string why_no_memory(const TableKey& key, std::size_t available) {
  constexpr double kCopies = 2;
  const double needed = kCopies * key.ranks * static_cast<double>(key.bytes);
  if (needed <= static_cast<double>(available)) return "";
  return fmt::format(
      "memory is too small: {} buffers of {} for each of {} ranks need {:.1f} GB, and {:.1f} GB "
      "are available",
      kCopies, format_decimal_bytes(key.bytes), key.ranks, needed / 1e9,
      static_cast<double>(available) / 1e9);
}

int run_table(const TableRequest& request) {
  TablePoints points(request.out, flags_of(request));
  if (!points.is_empty())
    std::cerr << fmt::format(
        "kolo-bench: --out {}: keeps the finished points there and measures the others\n",
        request.out);
  const Outcome outcome = TableRun(request, points).run();
  publish(request, outcome);
  return outcome.exit_code;
}

}  // namespace kolo::bench
