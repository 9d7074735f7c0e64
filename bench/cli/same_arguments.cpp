#include "bench/cli/same_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "bench/measure/call_form.h"

namespace kolo::bench {
namespace {

constexpr std::string_view kKey = "options of rank 0";

const char* shown(const std::string& value) { return value.empty() ? "not given" : value.c_str(); }

}  // namespace

std::vector<std::pair<std::string, std::string>> shared_options(const Arguments& arguments) {
  const Problem& problem = arguments.problem;
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  const auto yes = [](bool is) { return std::string(is ? "given" : "not given"); };
  return {{"the command", arguments.command},
          {"--transport", arguments.transport},
          {"--type", text(to_string(problem.type))},
          {"--op", text(to_string(problem.op))},
          {"--out-of-place", yes(!problem.is_in_place)},
          {"--servers", text(problem.servers)},
          {"--algorithm", arguments.is_by_all ? "all" : arguments.algorithm},
          {"--against", fmt::format("{}", fmt::join(arguments.against, ","))},
          {"--bytes", fmt::format("{}", fmt::join(arguments.sizes, ","))},
          {"--min-bytes", text(arguments.min_bytes)},
          {"--max-bytes", text(arguments.max_bytes)},
          {"--factor", text(arguments.factor)},
          {"--segment-bytes", text(arguments.segment_bytes)},
          {"--iterations", text(arguments.iterations)},
          {"--warmup", text(arguments.warmup)},
          {"--passes", text(arguments.passes)},
          {"--seconds", text(arguments.seconds)},
          {"--no-check", yes(!arguments.is_checked)},
          {"--allocated", yes(arguments.is_memory_its_own)},
          {"--device", arguments.device},
          {"--reproducibility", text(to_string(arguments.reproducibility))},
          {"--form", text(to_string(arguments.form))},
          {"--captured", yes(arguments.is_captured)},
          {"--overlap", yes(arguments.is_overlapped)},
          {"--profile", yes(arguments.is_profiled)},
          {"the kind of p2p", text(to_string(arguments.p2p.kind))},
          {"--level", text(to_string(arguments.p2p.level))},
          {"--window", text(arguments.p2p.window)}};
}

void require_same_arguments(int rank, const Arguments& arguments, Store& store) {
  const auto mine = shared_options(arguments);
  if (rank == 0) {
    store.set(kKey, nlohmann::json(mine).dump());
    return;
  }
  const auto text = store.get(kKey, Clock::now() + arguments.timeout);
  const auto theirs = nlohmann::json::parse(text).get<decltype(shared_options(arguments))>();
  for (std::size_t i = 0; i < mine.size() && i < theirs.size(); ++i) {
    if (mine[i] == theirs[i]) continue;
    throw std::invalid_argument(
        fmt::format("rank {} was started with other options than rank 0: {} is {} here and {} "
                    "there",
                    rank, mine[i].first, shown(mine[i].second), shown(theirs[i].second)));
  }
}

}  // namespace kolo::bench
