// Selection of the passes that form a row.
//
// Libraries run their passes in turn. Meanwhile the host of a virtual machine may move the cores,
// or another program may take one. A probe of the cores' distance before and after each pass puts
// the pass into a regime (cache_line.h) or none. A row uses passes of one regime, so its numbers
// were measured at the same distance.
//
// A player is a library, or the measurement of the machine's limit.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/measure/cache_line.h"

namespace kolo::bench {

// The counted passes of a player.
struct SelectedPasses {
  std::vector<double> times_us;    // of all counted iterations
  std::vector<double> medians_us;  // of the counted passes
  std::size_t left_out = 0;        // iterations of the other passes
};

class PassFilter {
 public:
  // With `keeps_all` every pass counts, at any distance.
  PassFilter(std::size_t players, bool keeps_all) : libraries_(players), keeps_all_(keeps_all) {}

  // Adds a probe in microseconds: call before the first pass and after each one, or, if all count,
  // after each round of passes.
  void probe(double cache_line_us);
  bool keeps_all() const { return keeps_all_; }
  // The time since the last probe was a pass of this player; the next probe ends it.
  void took(std::size_t player);

  // Whether another round of passes follows after `pass` rounds, of `passes` requested ones. Up to
  // as many again follow while a player has too few counted passes. The same result on all ranks
  // that have the same probes.
  bool goes_on(int pass, int passes) const;

  // For each pass of the player, in order, whether it counts. The passes of the regime count in
  // which the player with the fewest passes has most. All count if no regime has a pass of every
  // player.
  std::vector<bool> counting(std::size_t player) const;
  // `turns_us`: the times of the iterations in each pass of the player.
  SelectedPasses count(std::size_t player, const std::vector<std::vector<double>>& turns_us) const;
  // `turns_us` has a value or none for each pass of the player. Returns the known values of counted
  // passes.
  std::vector<double> known(std::size_t player,
                            const std::vector<std::optional<double>>& turns_us) const;
  // The distance by the probes around the counted passes.
  CoreDistance distance() const;

 private:
  struct Taken {
    std::size_t player = 0;
    std::size_t probe = 0;  // the probe before it
  };

  std::string_view regime_of(const Taken& turn) const;
  std::size_t coverage(std::string_view regime) const;
  // Empty if no regime has a pass of every player, or if all passes count.
  std::string_view chosen() const;

  std::size_t libraries_;
  bool keeps_all_;
  std::vector<double> probes_us_;
  std::vector<Taken> turns_;
};

}  // namespace kolo::bench
