#include "transports/ucx/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ucs/config/global_opts.h>
#include <cstdio>
#include <string>
#include <vector>

#include "transports/error.h"
#include "transports/ucx/printed_text.h"

namespace kolo::inline v0::ucx {

namespace {

// Reopens UCX's log on standard error, as UCX's own tests do. UCX opens its log while it is loaded.
// Setting UCX_LOG_FILE before that would change the environment while other threads may read it. If
// this UCX lacks one of the functions, the log stays where it is.
void move_log(const posix::InstalledLibrary& file) {
  decltype(&::ucs_global_opts_print) print = nullptr;
  decltype(&::ucs_global_opts_set_value) set = nullptr;
  void (*close_log)() = nullptr;
  void (*open_log)() = nullptr;
  if (!file.find("ucs_global_opts_print", print) || !file.find("ucs_log_cleanup", close_log) ||
      !file.find("ucs_global_opts_set_value", set) || !file.find("ucs_log_init", open_log))
    return;
  // Not ucs_global_opts_get_value, which returns LOG_FILE_FILTER instead (1.13).
  const std::string settings =
      text_printed_by([&](FILE* stream) { print(stream, UCS_CONFIG_PRINT_CONFIG); });
  const bool is_free = settings.find("\nUCX_LOG_FILE=\n") != std::string::npos;
  if (!is_free || set("LOG_FILE", "stderr") != UCS_OK) return;
  close_log();
  open_log();
}

posix::InstalledLibrary load_file() {
  const bool is_ours = !posix::is_loaded("libucs.so.0");
  posix::InstalledLibrary file("libucp.so.0");
  if (is_ours && file.why().empty()) move_log(file);
  return file;
}

struct Loaded {
  Library library{};
  std::string why;  // why it cannot be used; empty if it can
};

// Returns the names of missing functions.
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
  const posix::InstalledLibrary& file = installed_library();
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

const posix::InstalledLibrary& installed_library() {
  static const posix::InstalledLibrary once = load_file();
  return once;
}

std::string why_no_library() { return loaded().why; }

const Library& library() {
  if (!loaded().why.empty()) throw Error(ErrorCode::kUnavailable, kNoPeer, loaded().why);
  return loaded().library;
}

}  // namespace kolo::inline v0::ucx
