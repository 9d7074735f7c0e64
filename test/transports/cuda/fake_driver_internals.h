// What the sources of the played machine share.
#pragma once

#include "test/transports/cuda/fake_driver.h"

// Begins a function of the driver's: counted, and ended here where it shall fail.
#define KOLO_ENTER(function)                         \
  const std::lock_guard lock(machine_.mutex_);       \
  if (const int code = enter(function); code != 0) { \
    return code;                                     \
  }

namespace kolo::test::played {

// Where devices see registered host memory: not where the host does.
inline constexpr cuda::Address kSeenByDevices = cuda::Address{1} << 61;

inline cuda::Address address_of(const void* pointer) {
  return reinterpret_cast<cuda::Address>(pointer);
}

// The driver's codes for what a capture forbids.
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureIsolation = 905;
inline constexpr int kCapturedEvent = 907;

// The device whose context this thread has pushed last; -1: none.
int pushed_device();

}  // namespace kolo::test::played
