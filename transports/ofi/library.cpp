#include "transports/ofi/library.h"

#include <fmt/format.h>
#include <cstdlib>

#include "transports/error.h"
#include "transports/posix/library.h"

namespace kolo::ofi {

namespace {

constexpr const char* kFile = "libfabric.so.1";

struct Loaded {
  Library functions;
  std::string why_not;
};

// The first symbol that the library lacks, or null.
const char* find_all(const posix::InstalledLibrary& library, Library& functions) {
  if (!library.find("fi_version", functions.version)) return "fi_version";
  if (!library.find("fi_getinfo", functions.getinfo)) return "fi_getinfo";
  if (!library.find("fi_freeinfo", functions.freeinfo)) return "fi_freeinfo";
  if (!library.find("fi_dupinfo", functions.dupinfo)) return "fi_dupinfo";
  if (!library.find("fi_fabric", functions.fabric)) return "fi_fabric";
  if (!library.find("fi_strerror", functions.strerror)) return "fi_strerror";
  return nullptr;
}

Loaded load() {
  Loaded loaded;
  const posix::InstalledLibrary library(kFile);
  if (!library.why().empty()) {
    loaded.why_not = fmt::format("libfabric cannot be loaded ({}): install it (Debian: libfabric1)",
                                 library.why());
    return loaded;
  }
  if (const char* const missing = find_all(library, loaded.functions)) {
    loaded.why_not =
        fmt::format("{} has no function {}: install libfabric 1.17 or later", kFile, missing);
    return loaded;
  }
  const auto version = loaded.functions.version();
  if (FI_VERSION_LT(version, kInterface)) {
    loaded.why_not = fmt::format(
        "libfabric {}.{} is older than {}.{}, which this needs: install a later one",
        FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(kInterface), FI_MINOR(kInterface));
  }
  return loaded;
}

// Loaded once: a library stays until the process ends.
const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

std::string Library::text_of(long error) const {
  return strerror(static_cast<int>(std::labs(error)));
}

std::string why_no_library() { return loaded().why_not; }

const Library& library() {
  if (!loaded().why_not.empty()) throw Error(ErrorCode::kUnavailable, kNoPeer, loaded().why_not);
  return loaded().functions;
}

unsigned major_version() { return FI_MAJOR(library().version()); }

}  // namespace kolo::ofi
