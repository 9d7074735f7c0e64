// RDMA hardware of this machine (InfiniBand, RoCE), as reported by the kernel (sysfs).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0::posix {

// Link layers of the hardware that counts: RoCE and InfiniBand.
inline constexpr std::string_view kRdmaLinks[] = {"Ethernet", "InfiniBand"};

// Folders of the kernel; tests use others.
struct RdmaPlaces {
  std::string classes = "/sys/class";
  std::string devices = "/dev/infiniband";
};

// Link layers of the active ports that this process may use, each once, sorted. Without adapters
// that are simulated in software (rxe, siw), which are slower than TCP, and without those that UCX
// cannot use (iWARP, EFA).
std::vector<std::string> rdma_links(const RdmaPlaces& places = {});

}  // namespace kolo::inline v0::posix
