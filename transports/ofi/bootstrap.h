// Bootstrap of the ofi transport: ranks agree on a provider and exchange endpoint addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transports/base/liveness.h"
#include "transports/ofi/endpoint.h"
#include "transports/registry.h"

namespace kolo::inline v0::ofi {

// Endpoint address of a rank, published in the store once its endpoint is open.
struct EndpointAddress {
  std::string provider;
  std::string name;  // of the endpoint, in the provider's format
  std::size_t segment_bytes = 0;
  std::size_t window = 0;  // segments accepted from one peer, kSlots to kLongestWindow
  std::uint32_t token = 0;
  std::string process;  // posix::process_identity()
  LivenessAddress liveness;
  std::string why_not;  // not empty: no endpoint could be opened, and no other field counts
};

std::string to_text(const EndpointAddress& address);

// Error kProtocol, with the rank, if the text is not an endpoint address.
EndpointAddress address_from_text(const std::string& text, int rank);

// Returns the providers that all ranks can use, the best first. If `asked` is not empty, that one
// only; else every provider that all ranks have and that reaches all of them. Collective. Error
// kMismatch if ranks ask for different providers. Error kUnavailable, with the rank and its reason,
// if a rank does not have the provider.
std::vector<std::string> agree_on_providers(const TransportRequest& request,
                                            const std::string& asked);

// Returns the endpoint addresses of all ranks, by rank, including those with a why_not. Collective,
// once for each `attempt`. Errors: kDeadline names the missing ranks; kMismatch names a rank whose
// segment size differs.
std::vector<EndpointAddress> exchange_addresses(const TransportRequest& request,
                                                const EndpointAddress& own, std::size_t attempt);

// A rank that could not open a provider which all ranks have, and the reason.
struct Unopened {
  int rank = 0;
  std::string why_not;
};

// Returns the first rank without an endpoint, if there is one.
std::optional<Unopened> unopened_in(const std::vector<EndpointAddress>& addresses);

// Throws Error kUnavailable after all attempts failed, with the reason of each and the remedy.
[[noreturn]] void fail_unopened(const TransportRequest& request,
                                const std::vector<Unopened>& attempts);

// Throws Error kDeadline, "rank 1: rank 2 <what> ...", once the request's deadline has passed.
// Throws kAborted if a rank has posted a failure.
void fail_if_late(const TransportRequest& request, int peer, const std::string& what);

// Barrier over the store. Calls `progress` while it waits. Collective, once per transport.
void wait_for_all(const TransportRequest& request, const std::function<void()>& progress);

}  // namespace kolo::inline v0::ofi
