// What the machine allows for a row, measured in the same run just before it: the floors of limits/
// at one size.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "bench/arguments.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

class RunLimit {
 public:
  // `transport`: kolo's. `store`: all ranks'; a floor is measured by rank 0 while the others are
  // asleep in it.
  RunLimit(const Arguments& arguments, int rank, std::string transport,
           std::shared_ptr<Store> store);

  // Collective. Microseconds, at rank 0; nothing at the others, and where no floor is known: known
  // are those of has_floor (limits/limits.h) over shm and tcp, on two cores or more; of reductions
  // those of float32, and in place where kolo-bench has a choice.
  std::optional<double> measure(std::size_t bytes);

 private:
  const Arguments& arguments_;
  int rank_;
  std::string transport_;
  std::shared_ptr<Store> store_;
  bool is_like_;
  int turns_ = 0;
};

}  // namespace kolo::bench
