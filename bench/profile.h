// kolo-bench ... --profile: where the time of an operation goes, and how the rank waited.
#pragma once

#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace kolo::bench {

// What a rank's communicator has counted.
struct Profile {
  std::vector<StepProfile> steps;
  std::vector<PeerStatistics> peers;  // by rank; nothing for the rank itself
};

Profile profile_of(const Communicator& communicator);

// What came between the two, as lines of a table: a row per kind of step, a row per channel.
std::vector<std::string> profile_lines(const Profile& before, const Profile& after);

}  // namespace kolo::bench
