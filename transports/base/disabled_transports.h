// What kolo has and this build has not: a transport that was left out as kolo was configured.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kolo {

struct DisabledTransport {
  std::string_view name;
  std::string_view why;      // "rdma/fabric.h was not found"
  std::string_view way_out;  // "install libfabric-dev, then configure and build again"
};

// Those of this build, as CMakeLists.txt has come to leave them out.
std::span<const DisabledTransport> disabled_transports();

// What to tell who asks for the transport `name`, which is none of `names`, those of this build.
std::string refusal_of(std::string_view name, std::span<const std::string_view> names,
                       std::span<const DisabledTransport> left_out);

}  // namespace kolo
