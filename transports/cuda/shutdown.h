// Shutdown of a transport whose streams may still be running.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "transports/transport.h"

namespace kolo::inline v0::cuda {

// Base of objects that streams use. If streams may still use it when the transport ends, it stays
// alive until the process ends, in a list, so that leak checkers can reach it.
struct KeptUntilExit {
  KeptUntilExit() = default;
  KeptUntilExit(const KeptUntilExit&) = delete;
  KeptUntilExit& operator=(const KeptUntilExit&) = delete;
  virtual ~KeptUntilExit() = default;

  KeptUntilExit* next = nullptr;
};

// Safe from any thread.
void keep(std::unique_ptr<KeptUntilExit> stuck) noexcept;

// Polls `is_done` until it is true; false after `patience`.
template <typename IsDone>
bool wait_for_end(std::chrono::milliseconds patience, const IsDone& is_done) {
  constexpr auto kLookEvery = std::chrono::microseconds(50);
  const auto until = Clock::now() + patience;
  while (!is_done()) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(kLookEvery);
  }
  return true;
}

}  // namespace kolo::inline v0::cuda
