// Tuning table: the measured fastest algorithms.
//
// kolo-bench tune writes one. KOLO_TUNING or CommunicatorOptions::tuning loads it at rank 0, which
// sends it to all ranks. A text file with a line per point:
//
//   # collective  ranks  transport  bytes  algorithm
//   all_reduce    4      shm        65536  two_shot
//
// Lines that begin with # are comments. A point applies to all sizes that are nearer to it (by
// their ratio) than to another point, however far away. So measure from the smallest to the largest
// size in use. A point applies only to its collective, number of ranks and transport. It is ignored
// if a mode of reproducibility or a reducer does not allow its algorithm.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

struct TuningPoint {
  Collective collective = Collective::kAllReduce;
  int ranks = 0;
  std::string transport;
  std::size_t bytes = 0;
  std::string algorithm;

  friend bool operator==(const TuningPoint&, const TuningPoint&) = default;
};

class TuningTable {
 public:
  TuningTable() = default;
  explicit TuningTable(std::vector<TuningPoint> points);

  // Throws std::invalid_argument with `source`, the line and the problem.
  static TuningTable parse(std::string_view text, std::string_view source);
  static TuningTable read(const std::string& path);

  // The text format that parse() reads.
  std::string format() const;

  // The algorithm of the nearest point; nullopt if there is no point.
  std::optional<std::string_view> find(Collective collective, int ranks, std::string_view transport,
                                       std::size_t bytes) const;

  const std::vector<TuningPoint>& points() const { return points_; }

 private:
  std::vector<TuningPoint> points_;
};

}  // namespace kolo::inline v0
