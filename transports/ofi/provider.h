// Providers of libfabric (its networks): which ones work here, and which one the ranks use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/ofi/library.h"

namespace kolo::inline v0::ofi {

// A provider that is known to fulfil the transport contract, and its settings.
struct KnownProvider {
  std::string_view name;
  bool is_within_host = false;            // used only if requested by name
  bool needs_automatic_progress = false;  // its own thread moves the data
  bool shares_regions = false;            // see endpoint_group.h
  bool closes_at_rest = false;            // no data may arrive at close: OfiTransport::come_to_rest
  std::size_t segment_bytes = 0;          // the best segment size
  // Largest transfer from memory to memory. If the provider buffers unexpected messages, it may
  // buffer a window of these for each peer.
  std::size_t longest_bytes = std::size_t{1} << 20;
  unsigned since = 1;  // libfabric's major version
};

// The best first. Unknown providers are not probed unless requested: opening some of them hangs or
// crashes without their hardware. shm is the fastest within a host. But it holds a spin lock in
// memory of both ranks while it writes (1.17): a rank killed in that moment leaves its peer hanging
// in the provider. tcp alone is sufficient from libfabric 2 on, where rxm over tcp crashes when a
// peer dies (2.1).
inline constexpr KnownProvider kKnownProviders[] = {
    {"shm", true, false, true, false, std::size_t{64} << 10},
    {"tcp", false, false, false, true, std::size_t{128} << 10, std::size_t{128} << 10, 2},
    {"tcp;ofi_rxm", false, false, false, true, std::size_t{128} << 10},
    {"sockets", false, true, false, false, std::size_t{64} << 10},
};

// Returns the entry of `name`, or defaults for an unknown provider.
KnownProvider known_provider(std::string_view name);

// True if the requested provider may use RDMA hardware. None of kKnownProviders does.
bool may_use_rdma(std::string_view asked);

// Returns the providers that `asked` may mean, the best first. "tcp" also means "tcp;ofi_rxm", and
// "" means any that reaches other hosts.
std::vector<std::string> providers_meant(std::string_view asked);

// Returns the first of providers_meant() that works here, or `asked` if none does.
std::string provider_for(std::string_view asked);

struct Found {
  Info info;            // null if there is none
  std::string why_not;  // the reason if info is null
};

// Finds a usable description of provider `name`: reliable datagrams, tagged, in order of sending.
// Prefers a non-loopback address.
Found find_provider(const std::string& name);

// Returns why `name` cannot connect so many ranks of this host with `free_bytes` left in /dev/shm
// (it would end in SIGBUS); empty if it can.
std::string why_no_room(std::string_view name, int ranks, std::uint64_t free_bytes);

std::uint64_t free_bytes_of_shared_memory();

// Names of the known providers that work here.
std::vector<std::string> usable_providers();

// Names of all providers of the library.
std::vector<std::string> all_providers();

// Returns the numeric host address in `info`, "10.0.0.2"; empty if it has none.
std::string host_of(const fi_info& info);

}  // namespace kolo::inline v0::ofi
