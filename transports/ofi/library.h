// libfabric as it is found on this machine: loaded when it is first wanted, never linked.
#pragma once

#include <rdma/fabric.h>
#include <cstdint>
#include <memory>
#include <string>

namespace kolo::ofi {

// The functions that the library exports; all others are inline, over tables that it hands out.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  decltype(&::fi_version) version = nullptr;

  // "Connection refused", for what calls return (either sign).
  std::string text_of(long error) const;
};

// The interface that is asked for: every library since then has it.
inline constexpr std::uint32_t kInterface = FI_VERSION(1, 17);

// Empty, or why the library cannot be used and what to do. From any thread, as library().
std::string why_no_library();

// Error kUnavailable, as why_no_library() says.
const Library& library();

// Of the library's version.
unsigned major_version();

// What a provider offers or is asked for; freed by the library that made it.
struct FreeInfo {
  void operator()(fi_info* info) const { library().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

}  // namespace kolo::ofi
