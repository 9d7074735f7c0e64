#include "transports/ofi/library.h"

#include <fmt/format.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "transports/error.h"
#include "transports/posix/library.h"
#include "transports/settings.h"

namespace kolo::inline v0::ofi {

namespace {

constexpr const char* kFile = "libfabric.so.1";

struct Loaded {
  Library functions;
  std::string why_not;
};

// Returns the first missing symbol, or null.
const char* find_all(const posix::InstalledLibrary& library, Library& functions) {
  if (!library.find("fi_version", functions.version)) return "fi_version";
  if (!library.find("fi_getinfo", functions.getinfo)) return "fi_getinfo";
  if (!library.find("fi_freeinfo", functions.freeinfo)) return "fi_freeinfo";
  if (!library.find("fi_dupinfo", functions.dupinfo)) return "fi_dupinfo";
  if (!library.find("fi_fabric", functions.fabric)) return "fi_fabric";
  if (!library.find("fi_strerror", functions.strerror)) return "fi_strerror";
  return nullptr;
}

bool has_one_thread() {
  std::error_code none;
  const std::filesystem::directory_iterator threads("/proc/self/task", none);
  return !none && std::distance(begin(threads), end(threads)) == 1;
}

// By default rxm posts 4096 receives of 16 KiB for an endpoint, which touches 64 MiB in every rank.
// kolo needs less: a peer sends at most one window before kolo takes it. rxm reads this setting
// from the environment only, once, at the first call of libfabric. The environment belongs to the
// process, and other threads may be reading it; so change it only in a process of one thread.
class FewerReceives {
 public:
  FewerReceives() : is_set_(!is_in_environment(kName) && has_one_thread()) {
    if (is_set_) ::setenv(kName, "512", 0);
  }
  ~FewerReceives() {
    if (is_set_) ::unsetenv(kName);
  }
  FewerReceives(const FewerReceives&) = delete;
  FewerReceives& operator=(const FewerReceives&) = delete;

 private:
  static constexpr const char* kName = "FI_OFI_RXM_MSG_RX_SIZE";
  const bool is_set_;
};

// A query for an unknown provider initializes all providers and does nothing else.
void make_ready(const Library& functions) {
  const FewerReceives fewer;
  fi_info* const hints = functions.dupinfo(nullptr);
  if (hints == nullptr) return;  // the next call reports it
  hints->fabric_attr->prov_name = ::strdup("none");
  fi_info* list = nullptr;
  functions.getinfo(kInterface, nullptr, nullptr, 0, hints, &list);
  if (list != nullptr) functions.freeinfo(list);
  functions.freeinfo(hints);
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
    return loaded;
  }
  make_ready(loaded.functions);
  return loaded;
}

// Loaded once; the library stays loaded until the process ends.
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

}  // namespace kolo::inline v0::ofi
