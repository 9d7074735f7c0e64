// The proof that all workers hold the same parameters, bit for bit.
//
// Data-parallel training is right only while the replicas are equal; a lost or doubled contribution
// shows in nothing else for a long time. Every worker hashes its parameters, all ranks see all
// hashes, and if two differ, the hashes of single parameters tell where. Cost: one pass over the
// parameters and an all-reduce of 8 bytes per rank.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "collectives/communicator.h"
#include "tensor/arena.h"

namespace kolo::train {

// Replicas that have come apart. The message, the same on every rank, names the iteration, the
// ranks that agree, and the first parameter that differs.
class ReplicaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ReplicaGuard {
 public:
  // Ranks [0, workers) hold replicas; others take part, but have nothing to prove. Both are
  // borrowed.
  ReplicaGuard(Communicator& communicator, const tensor::Parameters& parameters, int workers);

  // Collective over all ranks of the communicator. Returns the hash that all workers have.
  // `iterations`: how many have been done. Throws ReplicaError.
  std::uint64_t check(std::int64_t iterations);

  // How often check() has found all equal.
  std::int64_t checks() const { return checks_; }

 private:
  [[noreturn]] void report(std::int64_t iterations, std::span<const std::int64_t> hashes);

  Communicator& communicator_;
  const tensor::Parameters& parameters_;
  int workers_;
  std::int64_t checks_ = 0;
};

}  // namespace kolo::train
