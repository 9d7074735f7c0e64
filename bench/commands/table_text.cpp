#include "bench/commands/table_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bench/cli/sizes.h"
#include "bench/measure/cores.h"
#include "bench/output/report.h"
#include "bench/output/run_info.h"

namespace kolo::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHeading =
    "| processes | size | library | over | average, ms | median, ms | algbw, GB/s | busbw, GB/s | "
    "ratio | iter | note |\n|--:|--:|:--|:--|--:|--:|--:|--:|--:|--:|:--|\n";

// What the words of the table mean.
constexpr const char* kDefinitions =
    R"(- A process is a rank. Data: float32, sum, in place. Every element of each result is checked.
- size: the data of each process, in powers of 1000, as in guides: 1 MB is 10^6 bytes. (Other
  commands of kolo-bench use powers of 1024.)
- time of an iteration: the longest over the processes, after a barrier.
- average, median: over the `iter` counted iterations. Warm-up iterations are not counted. Guides
  give averages. One slow iteration changes an average, but not a median.
- algbw = size / median. 1 GB/s is 10^9 bytes per second.
- busbw = algbw * 2 (n - 1) / n with n processes: what the busiest link carries in one direction,
  with the best algorithm. It can be compared between numbers of processes.
- ratio: the library's median over kolo's, measured in turn in the same job. Above 1, kolo is
  faster.
)";

double number(const Json& row, const char* name) { return row.at(name).get<double>(); }

std::string name_of(const Json& row) { return row.value("peer", row.at("library")); }

// At least three digits.
std::string milliseconds_text(double us) {
  const double ms = us / 1e3;
  const int digits = ms < 9.9995 ? 3 : (ms < 99.995 ? 2 : (ms < 999.95 ? 1 : 0));
  return fmt::format("{:.{}f}", ms, digits);
}

// With more processes than cores the probe of the cores is always disturbed.
bool has_unsure_regime(const Json& row) {
  const std::string regime = row.value("regime", "");
  return oversubscription_text(row).empty() && (regime == "moved" || regime == "disturbed");
}

std::string note_of(const Json& row) {
  std::vector<std::string> notes;
  if (const auto wrong = row.at("wrong").get<std::size_t>(); wrong > 0)
    notes.push_back(fmt::format("WRONG: {}", format_count(wrong, "element")));
  const std::string oversubscription = oversubscription_text(row);
  if (!oversubscription.empty()) notes.push_back(oversubscription);
  if (has_unsure_regime(row)) notes.push_back(row.value("regime", ""));
  return fmt::format("{}", fmt::join(notes, "; "));
}

std::string line_of(const TableKey& key, const Json& own, const Json& row) {
  const bool is_peer = row.contains("peer");
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", key.ranks,
      format_decimal_bytes(key.bytes), name_of(row), row.at("transport").get<std::string>(),
      milliseconds_text(number(row, "average_us")), milliseconds_text(number(row, "median_us")),
      bandwidth_text(number(row, "algbw_GBps")), bandwidth_text(number(row, "busbw_GBps")),
      is_peer ? ratio_text(number(row, "median_us") / number(own, "median_us")) : "",
      row.at("iterations").get<std::size_t>(), note_of(row));
}

std::string lines_of(const TableEntry& entry) {
  if (entry.point == nullptr) {
    return fmt::format("| {} | {} | - | - | - | - | - | - | - | - | {} |\n", entry.key.ranks,
                       format_decimal_bytes(entry.key.bytes), entry.why_missing);
  }
  std::string lines;
  for (const Json& row : entry.point->rows)
    lines += line_of(entry.key, entry.point->rows.front(), row);
  return lines;
}

// "Measured 2026-11-28 18:00 UTC to ..."; the dates of the rows sort as texts.
std::string dates_text(const std::vector<TableEntry>& entries) {
  std::set<std::string> dates;
  for (const TableEntry& entry : entries) {
    if (entry.point == nullptr) continue;
    for (const Json& row : entry.point->rows) dates.insert(row.at("run").at("date"));
  }
  if (dates.empty()) return "Nothing was measured.";
  return fmt::format("Measured {} to {}.", *dates.begin(), *dates.rbegin());
}

// Explains the notes that occur.
std::string notes_text(const std::vector<TableEntry>& entries) {
  std::vector<std::string> oversubscribed;
  bool is_unsure = false;
  for (const TableEntry& entry : entries) {
    if (entry.point == nullptr) continue;
    if (!oversubscription_text(entry.point->rows.front()).empty())
      oversubscribed.push_back(to_string(entry.key));
    is_unsure = is_unsure || std::ranges::any_of(entry.point->rows, has_unsure_regime);
  }
  std::string text;
  if (!oversubscribed.empty()) {
    text += fmt::format(
        "- More processes than cores: these times also show how processes share cores. Busy\n"
        "  waiting and a library's own threads (gloo: two per process) cost more there.\n"
        "  They are: {}.\n",
        fmt::join(oversubscribed, "; "));
  }
  if (is_unsure) {
    text +=
        "- moved, disturbed: the cores moved, or another program had a core, while the row was\n"
        "  measured. Do not compare it.\n";
  }
  return text;
}

}  // namespace

std::string oversubscription_text(const Json& row) {
  const auto ranks = row.at("ranks").get<std::size_t>();
  const auto cores = row.at("run").at("cores").get<std::size_t>();
  if (ranks <= cores) return "";
  return fmt::format("{} processes on {}", ranks, format_count(cores, "core"));
}

std::string medians_text(const TablePoint& point) {
  std::vector<std::string> words;
  for (const Json& row : point.rows)
    words.push_back(
        fmt::format("{} {} ms", name_of(row), milliseconds_text(number(row, "median_us"))));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string table_text(const TableRequest& request, const std::vector<TableEntry>& entries,
                       const std::string& incomplete) {
  std::string text =
      fmt::format("# Time and bandwidth of all-reduce\n\n    {}\n\n{}; {}.\n{}\n", own_command(),
                  describe_machine(), own_version(), dates_text(entries));
  for (const std::string& transport : request.transports) {
    text += fmt::format("\n## kolo over {}{}\n\n{}", transport,
                        request.against.empty()
                            ? ""
                            : fmt::format(", in turn with {}", fmt::join(request.against, ", ")),
                        kHeading);
    for (const TableEntry& entry : entries) {
      if (entry.key.transport == transport) text += lines_of(entry);
    }
  }
  text += fmt::format("\n{}{}", kDefinitions, notes_text(entries));
  if (!incomplete.empty()) {
    text += fmt::format("\nINCOMPLETE: {}. The same command measures the missing points.\n",
                        incomplete);
  }
  return text;
}

}  // namespace kolo::bench
