// Error texts of the driver, with advice.
#include <fmt/format.h>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

std::string advice_for(int code) {
  switch (code) {
    case kInvalidHandle:
    case kInvalidContext:
    case kContextIsDestroyed:
      return "; was the stream destroyed, or its device reset, while work was still to come, or is "
             "it one of another device or context?";
    case kIllegalAddress:
    case kLaunchFailed:
      return "; an earlier kernel or copy of this process failed, and the device is lost to it: "
             "look for it with compute-sanitizer";
    case kSystemDriverMismatch:
      return "; the driver's library and its kernel module are of different versions: restart the "
             "machine, or mount the host's library into the container";
    default:
      return "";
  }
}

std::string words_for(Driver& driver, int code) {
  const char* const name = driver.error_name(code);
  const char* const text = driver.error_text(code);
  if (name == nullptr) return fmt::format("the driver's error {}", code);
  return fmt::format("{} ({})", name, text == nullptr ? "no text" : text);
}

std::string in_units(std::size_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string why_unusable(Driver& driver, const DriverSettings& settings) {
  if (auto why = driver.why_absent(); !why.empty()) return why;
  int version = 0;
  const int asked = driver.version(&version);
  if (asked == kSuccess && version < settings.oldest_version) {
    return fmt::format("the CUDA driver has version {}, and {} is the oldest that kolo supports",
                       version_text(version), version_text(settings.oldest_version));
  }
  if (asked == kSuccess && version / 1000 < settings.runtime_version / 1000) {
    return fmt::format(
        "the CUDA driver is for CUDA {}, older than the runtime {} of the kernels: install a newer "
        "driver, or build with an older nvcc",
        version_text(version), version_text(settings.runtime_version));
  }
  const int started = driver.init();
  if (started == kNoDevice) {
    return fmt::format(
        "the CUDA driver finds no device: {}; see nvidia-smi and "
        "CUDA_VISIBLE_DEVICES",
        words_for(driver, started));
  }
  if (started != kSuccess)
    return fmt::format("cuInit: {}{}", words_for(driver, started), advice_for(started));
  if (asked != kSuccess) return fmt::format("cuDriverGetVersion: {}", words_for(driver, asked));
  int count = 0;
  const int counted = driver.device_count(&count);
  if (counted != kSuccess) return fmt::format("cuDeviceGetCount: {}", words_for(driver, counted));
  if (count == 0) return "the CUDA driver finds no device: see nvidia-smi and CUDA_VISIBLE_DEVICES";
  return "";
}

}  // namespace kolo::inline v0::cuda
