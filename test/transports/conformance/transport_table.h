// The transports that the conformance suite runs over. A new transport is one row here; a test
// holds this table against the registry, so that a forgotten row fails by name.
#pragma once

#include <array>
#include <string_view>

namespace kolo::test {

struct TransportRow {
  std::string_view name;
  bool can_answer = false;
  bool joins_processes = true;
};

inline constexpr std::array kTransports = {
    TransportRow{"inproc", true, false},
    TransportRow{"shm", true, true},
    TransportRow{"tcp", false, true},
};

}  // namespace kolo::test
