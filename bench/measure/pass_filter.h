// Which turns of a measurement belong together.
//
// Libraries take turns, and a virtual machine's host may move the cores meanwhile, or another
// program take one. With a probe of the cores' distance before every turn and after the last, each
// turn is of one regime or of none (cache_line.h), and a row is made of turns of one: what stands
// side by side in it was measured at the same distance.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/measure/cache_line.h"

namespace kolo::bench {

// What of a player's turns counts.
struct SelectedPasses {
  std::vector<double> times_us;    // of all iterations
  std::vector<double> medians_us;  // of the turns
  std::size_t left_out = 0;        // iterations of the other turns
};

class PassFilter {
 public:
  // With `keeps_all` every turn counts, wherever the cores were.
  PassFilter(std::size_t players, bool keeps_all) : libraries_(players), keeps_all_(keeps_all) {}

  // Before the first turn and after each, or, where all count, after those of each pass;
  // microseconds.
  void probe(double cache_line_us);
  bool keeps_all() const { return keeps_all_; }
  // What happened since the last probe was this player's turn, which the next probe ends.
  void took(std::size_t player);

  // Whether there is a pass after so many in which every player had a turn, of `passes` that were
  // asked for: as many again at most, while some player has too few turns that count. The same on
  // all ranks that know the same probes.
  bool goes_on(int pass, int passes) const;

  // Of each of the player's turns, in their order, whether it counts: those of the regime in which
  // the player with the fewest turns has most; all, where no regime has a turn of every player.
  std::vector<bool> counting(std::size_t player) const;
  // `turns_us`: the times of the iterations in each of the player's turns.
  SelectedPasses count(std::size_t player, const std::vector<std::vector<double>>& turns_us) const;
  // Of a figure for each of the player's turns, or none, those that are known and count.
  std::vector<double> known(std::size_t player,
                            const std::vector<std::optional<double>>& turns_us) const;
  // By the probes round the turns that count.
  CoreDistance distance() const;

 private:
  struct Taken {
    std::size_t player = 0;
    std::size_t probe = 0;  // the one before it
  };

  std::string_view regime_of(const Taken& turn) const;
  std::size_t coverage(std::string_view regime) const;
  // Empty: none has a turn of every player, or all turns count.
  std::string_view chosen() const;

  std::size_t libraries_;
  bool keeps_all_;
  std::vector<double> probes_us_;
  std::vector<Taken> turns_;
};

}  // namespace kolo::bench
