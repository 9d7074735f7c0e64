// How ranks agree on a provider and learn one another's addresses, before anything is sent.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transports/lifeline.h"
#include "transports/ofi/endpoint.h"
#include "transports/registry.h"

namespace kolo::ofi {

// What a rank publishes of itself once its endpoint is open.
struct Card {
  std::string provider;
  std::string name;  // of its endpoint, as the provider has it
  std::size_t segment_bytes = 0;
  std::size_t window = 0;  // segments that it takes of one peer
  std::uint32_t token = 0;
  std::string process;  // posix::process_identity()
  LifelineAddress lifeline;
  std::string why_not;  // no endpoint could be opened: nothing else counts then
};

std::string to_text(const Card& card);

// Error kProtocol that names the rank where the text is no card.
Card card_from_text(const std::string& text, int rank);

// The provider that all ranks take: `asked` for, or the best that all have and that reaches all of
// them. Collective. Error kMismatch where ranks ask for different ones, kUnavailable, with the rank
// and its reason, where one of them has not got it.
std::string agree_on_provider(const TransportRequest& request, const std::string& asked);

// Everybody's, by rank. Collective. Errors: kDeadline names who has not come; kUnavailable, with
// its reason, who has no endpoint; kMismatch who has other segments.
std::vector<Card> exchange_cards(const TransportRequest& request, const Card& own);

// Error kDeadline, "rank 1: rank 2 <what> ...", once the request's deadline has passed; kAborted
// where a failure was posted.
void fail_if_late(const TransportRequest& request, int peer, const std::string& what);

// Nobody goes on before all are here; `progress` is called meanwhile. Collective, once.
void wait_for_all(const TransportRequest& request, const std::function<void()>& progress);

}  // namespace kolo::ofi
