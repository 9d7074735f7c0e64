// Folder of real data for tests: $KOLO_TEST_DATA, or ../shared/data beside the source.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "test/support/catch.h"

namespace kolo::train {

// The folder `name` of the real data; it need not exist.
inline std::filesystem::path real_data(const std::string& name) {
  const char* given = std::getenv("KOLO_TEST_DATA");
  const std::filesystem::path data =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(KOLO_SOURCE_DIR) / "../shared/data";
  return data / name;
}

// Returns true and reports the reason to skip the test if `needed` does not exist.
inline bool is_skipped_without(const std::filesystem::path& needed) {
  if (std::filesystem::exists(needed)) return false;
  WARN("skipped: no " << needed.string()
                      << "; set KOLO_TEST_DATA to the folder that real data lies in");
  return true;
}

}  // namespace kolo::train
