#include "train/experiment/comparability.h"

#include <fmt/format.h>

namespace kolo::train {
namespace {

std::string value_of(const RunRecord& run, const std::string& term) {
  const auto found = run.terms.find(term);
  return found == run.terms.end() ? "nothing" : "'" + found->second + "'";
}

void require_equal_terms(const RunRecord& first, const RunRecord& other) {
  std::map<std::string, std::string> names = first.terms;
  names.insert(other.terms.begin(), other.terms.end());
  for (const auto& name : names) {
    // A single rank has no transport, so it lacks that term; an arm with servers may have it.
    const bool is_alone = first.terms.count(name.first) == 0 || other.terms.count(name.first) == 0;
    if (name.first == "transport" && is_alone && first.workers == 1) continue;
    // kolo and PyTorch compute and communicate in different ways, and PyTorch lacks some terms.
    const bool is_own = is_alone || name.first == "compute" || name.first == "transport";
    if (first.program != other.program && is_own) continue;
    const std::string mine = value_of(first, name.first), theirs = value_of(other, name.first);
    if (mine == theirs) continue;
    throw ComparisonRefused(
        fmt::format("these arms must not be compared: {} is {} in '{}' and {} in '{}' (seed {}). "
                    "Arms may differ "
                    "in nothing but the strategy",
                    name.first, mine, first.arm, theirs, other.arm, first.seed));
  }
}

}  // namespace

void require_comparable(std::span<const RunRecord> runs) {
  std::map<std::uint64_t, const RunRecord*> first_of_seed;
  for (const RunRecord& run : runs) {
    const auto [place, is_first] = first_of_seed.try_emplace(run.seed, &run);
    if (!is_first) require_equal_terms(*place->second, run);
  }
}

std::map<std::string, std::string> shared_terms(std::span<const RunRecord> runs) {
  if (runs.empty()) return {};
  std::map<std::string, std::string> terms = runs.front().terms;
  for (const RunRecord& run : runs) {
    std::erase_if(terms, [&run](const auto& term) {
      const auto found = run.terms.find(term.first);
      return found == run.terms.end() || found->second != term.second;
    });
  }
  return terms;
}

}  // namespace kolo::train
