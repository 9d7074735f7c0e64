#include "transports/ucx/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "transports/error.h"
#include "transports/posix/library.h"

namespace kolo::ucx {

namespace {

// From here on an active message may be kept, fetched and aligned as it is done here.
constexpr unsigned kOldestMajor = 1;
constexpr unsigned kOldestMinor = 13;

struct Loaded {
  Library library{};
  std::string why;  // it cannot be used; empty: it can
};

// The names of the functions that it lacks.
std::vector<std::string> find_all(const posix::InstalledLibrary& file, Library& library) {
  std::vector<std::string> missing;
  const auto find = [&](const char* symbol, auto*& function) {
    if (!file.find(symbol, function)) missing.emplace_back(symbol);
  };
  find("ucp_get_version", library.get_version);
  find("ucp_config_read", library.config_read);
  find("ucp_config_modify", library.config_modify);
  find("ucp_config_release", library.config_release);
  find("ucp_init_version", library.init_version);
  find("ucp_cleanup", library.cleanup);
  find("ucp_context_print_info", library.context_print_info);
  find("ucp_worker_create", library.worker_create);
  find("ucp_worker_destroy", library.worker_destroy);
  find("ucp_worker_get_address", library.worker_get_address);
  find("ucp_worker_release_address", library.worker_release_address);
  find("ucp_worker_get_efd", library.worker_get_efd);
  find("ucp_worker_arm", library.worker_arm);
  find("ucp_worker_flush_nbx", library.worker_flush_nbx);
  find("ucp_worker_progress", library.worker_progress);
  find("ucp_worker_set_am_recv_handler", library.worker_set_am_recv_handler);
  find("ucp_ep_create", library.ep_create);
  find("ucp_ep_flush_nbx", library.ep_flush_nbx);
  find("ucp_ep_print_info", library.ep_print_info);
  find("ucp_am_send_nbx", library.am_send_nbx);
  find("ucp_am_recv_data_nbx", library.am_recv_data_nbx);
  find("ucp_am_data_release", library.am_data_release);
  find("ucp_request_free", library.request_free);
  find("ucs_status_string", library.status_string);
  return missing;
}

Loaded load() {
  Loaded loaded;
  const posix::InstalledLibrary file("libucp.so.0");
  if (!file.why().empty()) {
    loaded.why = fmt::format("{}: install UCX (Debian: libucx0)", file.why());
    return loaded;
  }
  const auto missing = find_all(file, loaded.library);
  if (loaded.library.get_version != nullptr) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    loaded.library.get_version(&major, &minor, &release);
    if (major != kOldestMajor || minor < kOldestMinor) {
      loaded.why = fmt::format("libucp.so.0 is UCX {}.{}.{}, and {}.{} or later is needed", major,
                               minor, release, kOldestMajor, kOldestMinor);
      return loaded;
    }
  }
  if (!missing.empty())
    loaded.why = fmt::format("libucp.so.0 has no {}: install UCX {}.{} or later",
                             fmt::join(missing, ", "), kOldestMajor, kOldestMinor);
  return loaded;
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

std::string why_no_library() { return loaded().why; }

const Library& library() {
  if (!loaded().why.empty()) throw Error(ErrorCode::kUnavailable, kNoPeer, loaded().why);
  return loaded().library;
}

}  // namespace kolo::ucx
