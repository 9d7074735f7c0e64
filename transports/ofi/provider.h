// Providers: the networks of libfabric. Which of them serve here, and which one ranks take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/ofi/library.h"

namespace kolo::ofi {

// One that is known to keep what the contract needs, and what it wants to be told.
struct KnownProvider {
  std::string_view name;
  bool is_within_host = false;            // and not taken unasked
  bool needs_automatic_progress = false;  // its own thread moves the data
  bool shares_regions = false;            // see household.h
  bool closes_at_rest = false;            // not while data come in: see OfiTransport::come_to_rest
  std::size_t segment_bytes = 0;          // that serve best
  // Of what goes from memory to memory. Where the provider keeps what nobody waits for yet, a
  // window of these is what it may keep for each peer.
  std::size_t longest_bytes = std::size_t{1} << 20;
  unsigned since = 1;  // libfabric's major version
};

// The best first. Unknown ones are not even looked at unasked, for opening some of them hangs or
// crashes where their hardware is missing. shm is the fastest within a host, but holds a spin lock
// in memory of both ranks while it writes there (1.17): a rank killed in that moment leaves its
// peer in the provider for ever. tcp by itself has all that is needed from libfabric 2 on, where
// rxm over it crashes when a peer dies (2.1).
inline constexpr KnownProvider kKnownProviders[] = {
    {"shm", true, false, true, false, std::size_t{64} << 10},
    {"tcp", false, false, false, true, std::size_t{128} << 10, std::size_t{128} << 10, 2},
    {"tcp;ofi_rxm", false, false, false, true, std::size_t{128} << 10},
    {"sockets", false, true, false, false, std::size_t{64} << 10},
};

// What is known of `name`, or of any provider.
KnownProvider known_provider(std::string_view name);

// Those that may be meant by `asked`, the best first: "tcp" is also "tcp;ofi_rxm", and "" any that
// reaches other hosts.
std::vector<std::string> providers_meant(std::string_view asked);

// The first of them that serves here; `asked` itself where none does.
std::string provider_for(std::string_view asked);

struct Found {
  Info info;            // null where there is none
  std::string why_not;  // then
};

// What `name` offers that serves: reliable datagrams, tagged, in the order in which they were sent.
// Addresses of the loopback only where there are no others.
Found find_provider(const std::string& name);

// Why `name` cannot join so many ranks of this host with so much left of /dev/shm, where it would
// end in SIGBUS; empty: it can.
std::string why_no_room(std::string_view name, int ranks, std::uint64_t free_bytes);

std::uint64_t free_bytes_of_shared_memory();

// Names of known providers that serve here.
std::vector<std::string> usable_providers();

// Of all providers of the library that could be asked for by name.
std::vector<std::string> all_providers();

// The text of the numeric address in `info`, "10.0.0.2"; empty where it has none.
std::string host_of(const fi_info& info);

}  // namespace kolo::ofi
