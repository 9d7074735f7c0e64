#include "transports/ofi/library.h"

#include <fmt/format.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "transports/error.h"
#include "transports/posix/library.h"
#include "transports/settings.h"

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

bool has_one_thread() {
  std::error_code none;
  const std::filesystem::directory_iterator threads("/proc/self/task", none);
  return !none && std::distance(begin(threads), end(threads)) == 1;
}

// rxm posts 4096 receives of 16 KiB for an endpoint: 64 MiB touched in every rank, where no more
// than a channel's window comes from a peer before kolo takes it. What it shall post instead it
// reads from the environment alone, once, when libfabric is first asked for anything. The
// environment is the process's: where there are other threads, who may be reading it, all stays as
// it is.
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

// Asked for a provider that there is not, libfabric makes its providers ready and does nothing
// else.
void make_ready(const Library& functions) {
  const FewerReceives fewer;
  fi_info* const hints = functions.dupinfo(nullptr);
  if (hints == nullptr) return;  // whoever asks next will be told
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
