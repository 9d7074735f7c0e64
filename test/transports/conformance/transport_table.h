// The transports that the conformance suite runs over. A new transport is one row here; a test
// holds this table against the registry, so that a forgotten row fails by name.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "transports/registry.h"

namespace kolo::test {

struct TransportRow {
  std::string_view name;
  bool can_answer = false;
  bool joins_processes = true;
  // Null: the registry's. Otherwise a transport that only tests know.
  std::unique_ptr<Transport> (*make)(const TransportRequest& request) = nullptr;
};

std::unique_ptr<Transport> make_mailbox(const TransportRequest& request);

inline constexpr std::array kTransports = {
    TransportRow{"inproc", true, false}, TransportRow{"shm", true, true},
    TransportRow{"tcp", false, true},
    TransportRow{"mailbox", false, false,
                 make_mailbox},  // send and receive only, through the adapter
};

}  // namespace kolo::test
