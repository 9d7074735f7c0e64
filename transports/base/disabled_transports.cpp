#include "transports/base/disabled_transports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

namespace kolo::inline v0 {

namespace {

// The last row is a terminator, since an array cannot be empty.
constexpr DisabledTransport kLeftOut[] = {
#define KOLO_LEFT_OUT(name, why, way_out) {#name, why, way_out},
#include "transport_left_out.inc"
#undef KOLO_LEFT_OUT
    {}};

}  // namespace

std::span<const DisabledTransport> disabled_transports() {
  return std::span(kLeftOut).first(std::size(kLeftOut) - 1);
}

std::string refusal_of(std::string_view name, std::span<const std::string> names,
                       std::span<const DisabledTransport> left_out) {
  const std::string others = fmt::format(
      "this build has {} (or auto, or two joined by +, as shm+tcp, or the path of a library, which "
      "has a slash: ./libx.so)",
      fmt::join(names, ", "));
  const auto row = std::ranges::find(left_out, name, &DisabledTransport::name);
  if (row == left_out.end()) return fmt::format("unknown transport '{}': {}", name, others);
  return fmt::format("transport '{}' is not in this build, as {}: {}; {}", name, row->why,
                     row->way_out, others);
}

}  // namespace kolo::inline v0
