// Text of a group that a rank makes, in the store of the communicator that the group comes from.
//
// Ranks that make different groups wait for each other in the store, where no call header tells
// them. So a rank that has waited long for a group publishes this text, and compares it with the
// groups and the collectives of its members (engine/group_calls.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0 {

struct GroupCall {
  std::string name;
  std::int64_t use = 0;        // how often the rank has made a group of this name, with this one
  std::uint32_t sequence = 0;  // of the rank's next collective in the parent
  std::vector<int> ranks;      // of the parent, in the group's order

  friend bool operator==(const GroupCall&, const GroupCall&) = default;
};

// Store keys: the text that a rank has published, and how often the rank at `place` of a
// communicator has made one of this name.
std::string group_key(int rank);
std::string use_key(const std::string& name, std::size_t place);

std::string to_text(const GroupCall& call);

// The inverse; nullopt for any other text, such as that of a group that is complete.
std::optional<GroupCall> group_call_from(std::string_view text);

}  // namespace kolo::inline v0
