// RDMA hardware of this machine (InfiniBand, RoCE), as reported by the kernel (sysfs).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0::posix {

// Link layers of the supported hardware: "Ethernet" is RoCE.
inline constexpr std::string_view kRdmaLinks[] = {"Ethernet", "InfiniBand"};

// Folders of the kernel; tests use others.
struct RdmaPlaces {
  std::string classes = "/sys/class";
  std::string devices = "/dev/infiniband";
};

// Link layers of the active ports that this process may use, each once, sorted. Leaves out adapters
// that are simulated in software (rxe, siw), as they are slower than TCP. Leaves out adapters that
// UCX cannot use (iWARP, EFA).
std::vector<std::string> rdma_links(const RdmaPlaces& places = {});

}  // namespace kolo::inline v0::posix
