// The end of a transport whose streams may still be at work.
#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "transports/transport.h"

namespace kolo::cuda {

// What streams use. Where they may still be at it when its transport goes, it stays as it is until
// the process ends, in a list, so that it is known where it is.
struct KeptUntilExit {
  KeptUntilExit() = default;
  KeptUntilExit(const KeptUntilExit&) = delete;
  KeptUntilExit& operator=(const KeptUntilExit&) = delete;
  virtual ~KeptUntilExit() = default;

  KeptUntilExit* next = nullptr;
};

// From any thread.
void keep(std::unique_ptr<KeptUntilExit> stuck) noexcept;

// Asks again and again; false where it is not done in time.
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

}  // namespace kolo::cuda
