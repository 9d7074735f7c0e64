// Transports of kolo that are not in this build, since its configuration omitted them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kolo::inline v0 {

struct DisabledTransport {
  std::string_view name;
  std::string_view why;      // "rdma/fabric.h was not found"
  std::string_view way_out;  // "install libfabric-dev, then configure and build again"
};

// The omitted transports, with the reasons that CMake recorded.
std::span<const DisabledTransport> disabled_transports();

// Error text for a request of the transport `name`, which is not in `names`, those of this build.
std::string refusal_of(std::string_view name, std::span<const std::string> names,
                       std::span<const DisabledTransport> left_out);

}  // namespace kolo::inline v0
