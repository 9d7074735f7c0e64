// A table of measured choices: which algorithm was the fastest, where somebody has measured.
//
// kolo-bench tune writes one; KOLO_TUNING or CommunicatorOptions::tuning loads it, at rank 0, who
// tells the others. A text file, a line per point:
//
//   # collective  ranks  transport  bytes  algorithm
//   all_reduce    4      shm        65536  two_shot
//
// Lines that begin with # are for people. A point speaks for all sizes that are nearer to it than
// to another, by their ratio, however far away: so measure from the smallest size in use to the
// largest. It speaks for its collective, number of ranks and transport alone, and is passed over
// where a mode of reproducibility or a reducer refuses its algorithm.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule.h"

namespace kolo {

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

  // std::invalid_argument names `source`, the line and what is wrong with it.
  static TuningTable parse(std::string_view text, std::string_view source);
  static TuningTable read(const std::string& path);

  // What parse() reads.
  std::string format() const;

  // The algorithm of the nearest point; none where nobody measured.
  std::optional<std::string_view> find(Collective collective, int ranks, std::string_view transport,
                                       std::size_t bytes) const;

  const std::vector<TuningPoint>& points() const { return points_; }

 private:
  std::vector<TuningPoint> points_;
};

}  // namespace kolo
