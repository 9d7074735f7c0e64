// Transport over libfabric: one reliable-datagram endpoint per rank, over a provider that all ranks
// have.
//
// Cost of a segment: one tagged message. A segment of receive() goes into the caller's memory (zero
// copy), a segment of view() into a preposted buffer. For the cost below that see the provider's
// documentation.
//
// libfabric is loaded at the first use of the transport. Its own settings (FI_...) apply.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::inline v0 {

struct OfiSettings {
  std::string provider;           // name in libfabric; empty: tcp, or else sockets
  std::size_t segment_bytes = 0;  // 0: the best size for the provider
  // Opens a descriptor to sleep on, if the provider has one. Without it, the provider tcp saves a
  // write and a read per message.
  bool can_sleep = true;
  // For providers with a thread of their own. If a waiting rank receives nothing for so long, not
  // even its own messages, an error reports that the thread has ended.
  std::chrono::milliseconds patience{10000};
};

OfiSettings ofi_settings(const Settings& settings);

// Collective over the request's ranks: returns when all have published their addresses. Error
// kUnavailable names the rank and its reason; kDeadline names the missing ranks.
std::unique_ptr<Transport> make_ofi(const TransportRequest& request, const OfiSettings& settings);

}  // namespace kolo::inline v0
