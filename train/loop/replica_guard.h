// Replica guard: checks that all workers hold the same parameters, bit for bit.
//
// Data-parallel training is correct only while the replicas are equal. A lost or duplicated
// contribution has no other visible effect for a long time. Every worker hashes its parameters, and
// all ranks compare all hashes. If two differ, the hashes of single parameters show where. Cost:
// one pass over the parameters and an all-reduce of 8 bytes per rank.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "collectives/communicator.h"
#include "tensor/arena.h"

namespace kolo::train {

// Error: replicas differ. The message, the same on every rank, names the iteration, the ranks that
// agree, and the first parameter that differs.
class ReplicaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ReplicaGuard {
 public:
  // Ranks [0, workers) hold replicas; other ranks take part in the calls only. Both references are
  // borrowed.
  ReplicaGuard(Communicator& communicator, const tensor::Parameters& parameters, int workers);

  // Collective over all ranks of the communicator. Returns the common hash of all workers.
  // `iterations`: the number of finished iterations, for the message. Throws ReplicaError.
  std::uint64_t check(std::int64_t iterations);

  // Number of successful checks.
  std::int64_t checks() const { return checks_; }

 private:
  [[noreturn]] void report(std::int64_t iterations, std::span<const std::int64_t> hashes);

  Communicator& communicator_;
  const tensor::Parameters& parameters_;
  int workers_;
  std::int64_t checks_ = 0;
};

}  // namespace kolo::train
