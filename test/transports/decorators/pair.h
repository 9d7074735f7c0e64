// Two ranks in one thread: the ends of an inproc transport, to be decorated.
#pragma once

#include <array>
#include <memory>
#include <thread>

#include "transports/registry.h"

namespace kolo::test {

using Ends = std::array<std::unique_ptr<Transport>, 2>;

// Calls `decorate(transport)` for each end.
template <typename Decorate>
Ends make_pair(Decorate decorate) {
  const auto store = make_local_store();
  Ends ends;
  const auto make = [&](int rank) {
    const TransportRequest request{rank, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2};
    ends[static_cast<std::size_t>(rank)] = make_transport("inproc", request);
  };
  std::thread other([&] { make(1); });
  make(0);
  other.join();
  for (auto& end : ends) end = decorate(std::move(end));
  return ends;
}

}  // namespace kolo::test
