// kolo-bench ... --profile: the work and the waits of an operation on every rank.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

// Counters of a rank's communicator.
struct Profile {
  struct Steps {  // of one kind
    std::string kind;
    std::uint64_t segments = 0;
    std::uint64_t bytes = 0;
    double worked_us = 0;
    double waited_us = 0;
  };

  std::vector<Steps> steps;
  std::vector<PeerStatistics> peers;  // by rank; empty for the rank itself
};

Profile profile_of(const Communicator& communicator);

// The difference of two profiles, without the kinds that did not occur.
Profile between(const Profile& before, const Profile& after);

// Collective: returns the profiles of all ranks, on all ranks. A key can be used once. Error
// kDeadline names the missing ranks.
std::vector<Profile> gather_profiles(Store& store, int rank, const std::string& key,
                                     const Profile& mine, Deadline deadline);

// A table as text lines: a line per rank, and the steps and channels of three ranks. With more than
// 16 ranks only these three have lines. Their marks: "awaited" for the rank that the others waited
// for most, "waiting" for the one that waited most, "median". Empty without profiles.
std::vector<std::string> profile_lines(const std::vector<Profile>& profiles);

// All profiles for the JSON lines: an array by rank.
nlohmann::ordered_json profile_json(const std::vector<Profile>& profiles);

}  // namespace kolo::bench
