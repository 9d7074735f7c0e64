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
  std::string_view calls_itself = name;
  bool is_optional = false;  // not in every build: its row is skipped where it is not
};

std::unique_ptr<Transport> make_mailbox(const TransportRequest& request);
std::unique_ptr<Transport> make_shaped_inproc(const TransportRequest& request);
std::unique_ptr<Transport> make_shaped_tcp(const TransportRequest& request);
std::unique_ptr<Transport> make_tcp_of_3_lanes(const TransportRequest& request);
std::unique_ptr<Transport> make_stormy_inproc(const TransportRequest& request);
std::unique_ptr<Transport> make_tabled_shm(const TransportRequest& request);
std::unique_ptr<Transport> make_tabled_tcp(const TransportRequest& request);

inline constexpr std::array kTransports = {
    TransportRow{"inproc", true, false},
    TransportRow{"shm", true, true},
    TransportRow{"tcp", false, true},
    TransportRow{.name = "ucx", .is_optional = true},
    TransportRow{.name = "ofi", .is_optional = true},
    TransportRow{"tcp of 3 lanes", false, false, make_tcp_of_3_lanes, "tcp"},
    TransportRow{"mailbox", false, false,
                 make_mailbox},  // send and receive only, through the adapter
    // Through the table for transports from outside, and back.
    TransportRow{"tabled-shm", true, false, make_tabled_shm},
    TransportRow{"tabled-tcp", false, false, make_tabled_tcp},
    // Decorated: a network that is fast, one with jitter, and "not now" to who receives.
    TransportRow{"inproc,100Gbit,20us", false, false, make_shaped_inproc},
    TransportRow{"tcp,10Gbit,jitter=50us,seed=3", false, false, make_shaped_tcp},
    TransportRow{"inproc,storm@times=3,on=in", true, false, make_stormy_inproc},
};

}  // namespace kolo::test
