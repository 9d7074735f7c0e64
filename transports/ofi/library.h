// libfabric of this machine, loaded at first use and never linked.
#pragma once

#include <rdma/fabric.h>
#include <cstdint>
#include <memory>
#include <string>

namespace kolo::inline v0::ofi {

// Functions that the library exports. All others are inline functions over tables of the library.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  decltype(&::fi_version) version = nullptr;

  // Text for a return code, of either sign: "Connection refused".
  std::string text_of(long error) const;
};

// Requested version of libfabric's interface. Every later library supports it.
inline constexpr std::uint32_t kInterface = FI_VERSION(1, 17);

// Returns why the library cannot be used and the remedy; empty if it can. Safe from any thread, as
// is library().
std::string why_no_library();

// Error kUnavailable with the text of why_no_library().
const Library& library();

// Major version of the library.
unsigned major_version();

// Description of a provider, offered or requested. Freed by the library that made it.
struct FreeInfo {
  void operator()(fi_info* info) const { library().freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

}  // namespace kolo::inline v0::ofi
