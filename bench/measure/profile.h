// kolo-bench ... --profile: where the time of an operation goes on every rank, and how each waited.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

// What a rank's communicator has counted.
struct Profile {
  struct Steps {  // of one kind
    std::string kind;
    std::uint64_t segments = 0;
    std::uint64_t bytes = 0;
    double worked_us = 0;
    double waited_us = 0;
  };

  std::vector<Steps> steps;
  std::vector<PeerStatistics> peers;  // by rank; nothing for the rank itself
};

Profile profile_of(const Communicator& communicator);

// What came between the two; kinds of which nothing did are left out.
Profile between(const Profile& before, const Profile& after);

// Collective: the profiles of all ranks, on all. A key serves once. Error kDeadline names who did
// not come.
std::vector<Profile> gather_profiles(Store& store, int rank, const std::string& key,
                                     const Profile& mine, Deadline deadline);

// A table for people: a line for each rank, and the steps and the channels of those that worked
// the most, the least, and the median time. Of more than 16 ranks these three alone have lines;
// of no ranks there is no table.
std::vector<std::string> profile_lines(const std::vector<Profile>& profiles);

// All of it, for the JSON lines: an array, by rank.
nlohmann::ordered_json profile_json(const std::vector<Profile>& profiles);

}  // namespace kolo::bench
