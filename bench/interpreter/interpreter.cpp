#include "bench/interpreter/interpreter.h"

#include <fmt/format.h>

#include <cstdio>

#include "bench/cli/sizes.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/cores.h"
#include "bench/output/report.h"
#include "bench/output/run_info.h"

namespace kolo::bench {
namespace {

bool is_over(double value, double limit) { return limit >= 0 && value > limit; }

std::string verdict_of(double value, double limit) {
  return limit < 0 ? "-" : fmt::format("{:g} {}", limit, is_over(value, limit) ? "over" : "ok");
}

// Two decimals for small numbers, none for large ones.
std::string number(double value) { return fmt::format("{:.{}f}", value, value < 100 ? 2 : 0); }

void print(const char* about, const std::vector<InterpreterRow>& rows) {
  fmt::print("\n# {}\n{:<32} {:>10} {:>10} {:>10} {:<3} {:>9} {:<8} {}\n", about, "what", "size",
             "by hand", "kolo", "", "judged", "", "limit");
  for (const InterpreterRow& row : rows) {
    fmt::print("{:<32} {:>10} {:>10} {:>10} {:<3} {:>9} {:<8} {}\n", row.what, row.size,
               row.by_hand < 0 ? "-" : number(row.by_hand), number(row.interpreted), row.unit,
               row.measure == "ratio" ? fmt::format("{:.3f}", row.judged) : number(row.judged),
               row.measure, verdict_of(row.judged, row.limit));
  }
  std::fflush(stdout);
}

void print(const char* about, const std::vector<PlanRow>& rows) {
  fmt::print("\n# {}\n{:<38} {:>6} {:>9} {:<12} {:>12} {:>12} {}\n", about, "what", "ranks", "us",
             "limit", "for 1 KiB", "for 1 GiB", "limit");
  for (const PlanRow& row : rows) {
    fmt::print("{:<38} {:>6} {:>9} {:<12} {:>12} {:>12} no more {}\n", row.what, row.ranks,
               number(row.us), verdict_of(row.us, row.most_us), format_bytes(row.small),
               format_bytes(row.large), row.large <= row.small ? "ok" : "over");
  }
  std::fflush(stdout);
}

}  // namespace

int run_interpreter(const InterpreterRequest& request) {
  fmt::print("# kolo-bench interpreter\n# {}; {}\n# {}\n", describe_machine(),
             round_trip_text(cache_line_round_trip()), own_version());
  bool is_late = false;
  const auto show = [&is_late](const char* about, const std::vector<InterpreterRow>& rows) {
    print(about, rows);
    for (const InterpreterRow& row : rows) is_late = is_late || is_over(row.judged, row.limit);
  };
  show("streaming: medians; the ratio is the median of the rounds' ratios",
       streaming_rows(request));
  show("fixed cost, per operation and rank", fixed_rows(request));
  show("cached: find a plan and start it", cached_rows(request));
  const std::vector<PlanRow> plans = planning_rows(request);
  print("planning: write and compile one rank's schedule, and the memory of the plan", plans);
  bool has_grown = false;
  for (const PlanRow& plan : plans) {
    is_late = is_late || is_over(plan.us, plan.most_us);
    has_grown = has_grown || plan.large > plan.small;
  }
  return has_grown || (is_late && !request.is_quick) ? 1 : 0;
}

}  // namespace kolo::bench
