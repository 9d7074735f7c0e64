#include "transports/log.h"

#include <cstdio>

namespace kolo::inline v0 {

void write_line(const Log& log, std::string_view line) noexcept {
  if (!log) {
    std::fprintf(stderr, "kolo: %.*s\n", static_cast<int>(line.size()), line.data());
    return;
  }
  try {
    log(line);
  } catch (...) {
    // There is no other place to report it.
  }
}

}  // namespace kolo::inline v0
