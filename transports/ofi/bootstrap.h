// How ranks agree on a provider and learn one another's addresses, before anything is sent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transports/base/liveness.h"
#include "transports/ofi/endpoint.h"
#include "transports/registry.h"

namespace kolo::ofi {

// What a rank publishes of itself once its endpoint is open.
struct EndpointAddress {
  std::string provider;
  std::string name;  // of its endpoint, as the provider has it
  std::size_t segment_bytes = 0;
  std::size_t window = 0;  // segments that it takes of one peer, kSlots to kLongestWindow
  std::uint32_t token = 0;
  std::string process;  // posix::process_identity()
  LivenessAddress lifeline;
  std::string why_not;  // no endpoint could be opened: nothing else counts then
};

std::string to_text(const EndpointAddress& card);

// Error kProtocol that names the rank where the text is no card.
EndpointAddress address_from_text(const std::string& text, int rank);

// The providers that all ranks may take: `asked` for, or, where that is empty, all that all ranks
// have and that reach all of them, the best first. Collective. Error kMismatch where ranks ask for
// different ones, kUnavailable, with the rank and its reason, where one of them has not got it.
std::vector<std::string> agree_on_providers(const TransportRequest& request,
                                            const std::string& asked);

// Everybody's, by rank; those that say why they have no endpoint as well. Collective, once for each
// `attempt`. Errors: kDeadline names who has not come; kMismatch who has other segments.
std::vector<EndpointAddress> exchange_addresses(const TransportRequest& request,
                                                const EndpointAddress& own, std::size_t attempt);

// A rank that could not open a provider that all ranks have, and why.
struct Unopened {
  int rank = 0;
  std::string why_not;
};

// The first of these, if there is one.
std::optional<Unopened> unopened_in(const std::vector<EndpointAddress>& cards);

// Error kUnavailable after attempts of which none succeeded: with each, and what to do.
[[noreturn]] void fail_unopened(const TransportRequest& request,
                                const std::vector<Unopened>& attempts);

// Error kDeadline, "rank 1: rank 2 <what> ...", once the request's deadline has passed; kAborted
// where a failure was posted.
void fail_if_late(const TransportRequest& request, int peer, const std::string& what);

// Nobody goes on before all are here; `progress` is called meanwhile. Collective, once.
void wait_for_all(const TransportRequest& request, const std::function<void()>& progress);

}  // namespace kolo::ofi
