// The transports over which the conformance suite runs. A new transport is one row here. A test
// compares this table with the registry, so that it names a forgotten row.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transports/registry.h"

namespace kolo::test {

struct TransportRow {
  std::string_view name;
  bool can_answer = false;
  bool joins_processes = true;
  // Null: the registry's make function. Otherwise a transport for tests only.
  std::unique_ptr<Transport> (*make)(const TransportRequest& request) = nullptr;
  std::string_view calls_itself = name;
  // a transport that is not in every build: without it the row is skipped
  std::string_view needs = {};
  // A transport of the registry whose hardware this machine may lack: `make` simulates it, with
  // threads as ranks.
  bool is_played = false;
  std::string_view groups = {};  // groups of clauses to run; empty: all

  bool is_of_registry() const { return make == nullptr || is_played; }
};

std::unique_ptr<Transport> make_mailbox(const TransportRequest& request);
std::unique_ptr<Transport> make_shaped_inproc(const TransportRequest& request);
std::unique_ptr<Transport> make_shaped_tcp(const TransportRequest& request);
std::unique_ptr<Transport> make_tcp_of_3_lanes(const TransportRequest& request);
std::unique_ptr<Transport> make_stormy_inproc(const TransportRequest& request);
std::unique_ptr<Transport> make_shaped_ofi(const TransportRequest& request);
std::unique_ptr<Transport> make_stormy_ofi(const TransportRequest& request);
std::unique_ptr<Transport> make_traced_shm(const TransportRequest& request);
std::unique_ptr<Transport> make_traced_tcp(const TransportRequest& request);
std::unique_ptr<Transport> make_traced_ofi(const TransportRequest& request);
std::unique_ptr<Transport> make_mixed_pairs(const TransportRequest& request);
std::unique_ptr<Transport> make_mixed_crosswise(const TransportRequest& request);
std::unique_ptr<Transport> make_played_cuda_ipc(const TransportRequest& request);
std::unique_ptr<Transport> make_staged_inproc(const TransportRequest& request);
std::unique_ptr<Transport> make_staged_shm(const TransportRequest& request);
std::unique_ptr<Transport> make_staged_tcp(const TransportRequest& request);
// Forbidden calls to the fake machine so far.
std::vector<std::string> played_violations();

inline constexpr std::array kTransports = {
    TransportRow{"inproc", true, false},
    TransportRow{"shm", true, true},
    TransportRow{"tcp", false, true},
    TransportRow{.name = "ucx", .needs = "ucx"},
    TransportRow{.name = "ofi", .needs = "ofi"},
    TransportRow{.name = "cuda_ipc",
                 .can_answer = true,
                 .joins_processes = false,
                 .make = make_played_cuda_ipc,
                 .is_played = true},
    TransportRow{"tcp of 3 lanes", false, false, make_tcp_of_3_lanes, "tcp"},
    TransportRow{"mailbox", false, false,
                 make_mailbox},  // send and receive only, through the adapter
    // Two transports: ranks 0 and 1 share a host, as do 2 and 3; or even and odd ranks. Their
    // channels are those of shm and tcp, so only the parts' life together is new.
    TransportRow{.name = "shm+tcp, by pairs",
                 .can_answer = true,
                 .joins_processes = false,
                 .make = make_mixed_pairs,
                 .calls_itself = "shm+tcp",
                 .groups = "streams, sleep, the end"},
    TransportRow{.name = "shm+tcp, crosswise",
                 .joins_processes = false,
                 .make = make_mixed_crosswise,
                 .calls_itself = "shm+tcp",
                 .groups = "streams, sleep, the end"},
    // With a stream form, whose own clauses are in test/transports/cuda.
    TransportRow{"inproc, staged", true, false, make_staged_inproc, "inproc"},
    TransportRow{"shm, staged", true, false, make_staged_shm, "shm"},
    TransportRow{"tcp, staged", false, false, make_staged_tcp, "tcp"},
    // Decorated: a fast network, one with jitter, and one that returns "not now" to receivers.
    TransportRow{"inproc,100Gbit,20us", false, false, make_shaped_inproc},
    TransportRow{"tcp,10Gbit,jitter=50us,seed=3", false, false, make_shaped_tcp},
    TransportRow{"inproc,storm@times=3,on=in", true, false, make_stormy_inproc},
    // Decorators over libfabric, whose library makes progress by itself. To save time, clauses with
    // little relation to this are left out.
    TransportRow{.name = "ofi,100Gbit,20us",
                 .joins_processes = false,
                 .make = make_shaped_ofi,
                 .needs = "ofi",
                 .groups = "streams, credit, sleep, the end"},
    TransportRow{.name = "ofi,storm@times=3,on=in",
                 .joins_processes = false,
                 .make = make_stormy_ofi,
                 .needs = "ofi",
                 .groups = "streams, credit, memory, sleep"},
    TransportRow{.name = "ofi, traced",
                 .joins_processes = false,
                 .make = make_traced_ofi,
                 .calls_itself = "ofi",
                 .needs = "ofi",
                 .groups = "streams, memory"},
    TransportRow{"shm, traced", true, false, make_traced_shm, "shm"},
    TransportRow{"tcp, traced", false, false, make_traced_tcp, "tcp"},
};

}  // namespace kolo::test
