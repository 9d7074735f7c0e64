// Crossover of a ring and parameter servers: the time of one exchange of gradients, for each number
// of dedicated servers.
//
// n workers exchange M bytes. The busiest wire carries, in each direction:
//
//   ring, everywhere   2 (n - 1) / n M      for any number of servers
//   ps, k servers      n M / k              at a server; for k > n: M, at a worker
//   split, k servers   2 n (n - 1) M / D    on every rank; D = n^2 + k n - 2 k, n >= 3, k <= n
//
// `split`: workers serve a part of the gradients too, so that workers and servers have equally much
// to send. So k servers beat a ring from k > n^2 / (2 (n - 1)) on: 3 for n = 4, 5 for n = 8. A ring
// has 2 (n - 1) hops, the others 2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/crossover/options.h"

namespace kolo::train {

struct CrossoverPoint {
  std::string arm;                      // ring, everywhere, ps or split
  int servers = 0;                      // dedicated ones
  double predicted = 0;                 // seconds
  std::optional<double> measured = {};  // nothing: not yet
};

// One point for ring and everywhere; 1 to n points for ps and, from three workers on, for split.
std::vector<CrossoverPoint> predict_crossover(int ranks, double bytes, const Network& network);

// The smallest number of dedicated servers from which on every number of them beats the ring, by
// prediction or by measurement. Nothing if there is none.
enum class TimeBy { prediction, measurement };
std::optional<int> first_better_servers(const std::vector<CrossoverPoint>& points, TimeBy by);

// This process as one rank: measures each point. Complete on rank 0.
// Collective over all ranks of the launcher's environment. Throws UsageError if their number does
// not fit the options.
struct CrossoverResult {
  std::vector<CrossoverPoint> points;
  std::string transport;
};
CrossoverResult measure_crossover(const CrossoverOptions& options);

}  // namespace kolo::train
