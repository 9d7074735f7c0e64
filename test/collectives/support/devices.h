// Devices for tests of the label gpu: each function is false, with a line "skipped: why", if the
// machine lacks them.
#pragma once

#include "collectives/reduce/device/device.h"
#include "test/support/catch.h"

namespace kolo::test {

inline bool has_device() {
  if (device::why_unusable().empty()) return true;
  WARN("skipped: " << device::why_unusable());
  return false;
}

inline bool has_several_devices() {
  if (!has_device()) return false;
  if (device::count() > 1) return true;
  WARN("skipped: one device here");
  return false;
}

}  // namespace kolo::test
