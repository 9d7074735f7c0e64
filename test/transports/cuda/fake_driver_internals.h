// Declarations shared by the sources of the fake machine.
#pragma once

#include "test/transports/cuda/fake_driver.h"

// Begins a driver function: counts the call, and returns here if it shall fail.
#define KOLO_ENTER(function)                         \
  const std::lock_guard lock(machine_.mutex_);       \
  if (const int code = enter(function); code != 0) { \
    return code;                                     \
  }

namespace kolo::test::played {

// Offset of registered host memory as devices see it: not the host's address.
inline constexpr cuda::Address kSeenByDevices = cuda::Address{1} << 61;

inline cuda::Address address_of(const void* pointer) {
  return reinterpret_cast<cuda::Address>(pointer);
}

// The driver's error codes for calls that a capture forbids.
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureIsolation = 905;
inline constexpr int kCapturedEvent = 907;

// The device of the context that this thread has pushed last; -1: none.
int pushed_device();

}  // namespace kolo::test::played
