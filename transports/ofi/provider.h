// Providers: the networks of libfabric. Which of them serve here, and which one ranks take.
#pragma once

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
};

// The best first. Unknown ones are not even looked at unasked, for opening some of them hangs or
// crashes where their hardware is missing. shm is the fastest within a host, but holds a spin lock
// in memory of both ranks while it writes there (1.17): a rank killed in that moment leaves its
// peer in the provider for ever.
inline constexpr KnownProvider kKnownProviders[] = {
    {"shm", true, false, true, false, std::size_t{64} << 10},
    {"tcp;ofi_rxm", false, false, false, true, std::size_t{128} << 10},
    {"sockets", false, true, false, false, std::size_t{64} << 10},
};

// What is known of `name`, or of any provider.
KnownProvider known_provider(std::string_view name);

// "tcp" for "tcp;ofi_rxm": only over rxm it has what is needed.
std::string full_name(std::string_view name);

struct Found {
  Info info;            // null where there is none
  std::string why_not;  // then
};

// What `name` offers that serves: reliable datagrams, tagged, in the order in which they were sent.
// Addresses of the loopback only where there are no others.
Found find_provider(const std::string& name);

// Names of known providers that serve here.
std::vector<std::string> usable_providers();

// Of all providers of the library that could be asked for by name.
std::vector<std::string> all_providers();

// The text of the numeric address in `info`, "10.0.0.2"; empty where it has none.
std::string host_of(const fi_info& info);

}  // namespace kolo::ofi
