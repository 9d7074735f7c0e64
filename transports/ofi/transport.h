// Ranks joined by libfabric: one reliable-datagram endpoint a rank, over whichever provider all of
// them have.
//
// What a segment costs: one tagged message. One that receive() waits for goes straight into the
// caller's memory, one that is viewed into a buffer that was posted for it; of what happens below,
// the provider's documentation tells.
//
// libfabric is loaded when the transport is first asked for; its own settings (FI_...) count.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo {

struct OfiSettings {
  std::string provider;           // of libfabric's; empty: tcp, or else sockets
  std::size_t segment_bytes = 0;  // 0: what serves the provider best
  // A descriptor to sleep on, where the provider has one; without it, the provider tcp spares a
  // write and a read for every message.
  bool can_sleep = true;
  // Where the provider has a thread of its own: for so long it may bring nothing to a rank that
  // waits, not even what the rank sends to itself. Then an error says that the thread has ended.
  std::chrono::milliseconds patience{10000};
};

OfiSettings ofi_settings(const Settings& settings);

// Collective over the request's ranks: all have published their addresses when it returns. Error
// kUnavailable says which rank lacks what; kDeadline names the ranks that did not come.
std::unique_ptr<Transport> make_ofi(const TransportRequest& request, const OfiSettings& settings);

}  // namespace kolo
