#include "bench/measure/pass_filter.h"

#include <algorithm>

#include "bench/measure/statistics.h"

namespace kolo::bench {

void PassFilter::probe(double cache_line_us) { probes_us_.push_back(cache_line_us); }

void PassFilter::took(std::size_t player) { turns_.push_back({player, probes_us_.size() - 1}); }

std::string_view PassFilter::regime_of(const Taken& turn) const {
  CoreDistance around;
  around.add(probes_us_[turn.probe]);
  around.add(probes_us_[turn.probe + 1]);
  return around.regime();
}

std::size_t PassFilter::coverage(std::string_view regime) const {
  std::vector<std::size_t> turns(libraries_);
  for (const Taken& turn : turns_) {
    if (regime_of(turn) == regime) ++turns[turn.player];
  }
  return turns.empty() ? 0 : std::ranges::min(turns);
}

std::string_view PassFilter::chosen() const {
  std::string_view best;
  if (keeps_all_) return best;
  std::size_t most = 0;
  for (const std::string_view regime : {"near", "far", "unknown"}) {
    const std::size_t here = coverage(regime);
    if (here > most) best = regime;
    most = std::max(most, here);
  }
  return best;
}

bool PassFilter::goes_on(int pass, int passes) const {
  if (pass < passes) return true;
  if (keeps_all_ || pass >= 2 * passes) return false;
  const int enough = std::max(1, passes * 3 / 4);
  return coverage(chosen()) < static_cast<std::size_t>(enough);
}

std::vector<bool> PassFilter::counting(std::size_t player) const {
  const std::string_view regime = chosen();
  std::vector<bool> counts;
  for (const Taken& turn : turns_) {
    if (turn.player == player) counts.push_back(regime.empty() || regime_of(turn) == regime);
  }
  return counts;
}

SelectedPasses PassFilter::count(std::size_t player,
                                 const std::vector<std::vector<double>>& turns_us) const {
  SelectedPasses counted;
  const std::vector<bool> counts = counting(player);
  for (std::size_t i = 0; i < turns_us.size(); ++i) {
    const std::vector<double>& times = turns_us[i];
    if (!counts.at(i)) {
      counted.left_out += times.size();
      continue;
    }
    counted.times_us.insert(counted.times_us.end(), times.begin(), times.end());
    counted.medians_us.push_back(quantile(times, 0.5));
  }
  return counted;
}

std::vector<double> PassFilter::known(std::size_t player,
                                      const std::vector<std::optional<double>>& turns_us) const {
  std::vector<double> found;
  if (turns_us.empty()) return found;
  const std::vector<bool> counts = counting(player);
  for (std::size_t i = 0; i < turns_us.size(); ++i) {
    if (turns_us[i] && counts[i]) found.push_back(*turns_us[i]);
  }
  return found;
}

CoreDistance PassFilter::distance() const {
  const std::string_view regime = chosen();
  std::vector<bool> is_around(probes_us_.size(), regime.empty());
  for (const Taken& turn : turns_) {
    if (regime_of(turn) == regime) is_around[turn.probe] = is_around[turn.probe + 1] = true;
  }
  CoreDistance distance;
  for (std::size_t i = 0; i < probes_us_.size(); ++i) {
    if (is_around[i]) distance.add(probes_us_[i]);
  }
  return distance;
}

}  // namespace kolo::bench
