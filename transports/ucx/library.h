// libucp, loaded at run time and never linked: addresses of the functions in use.
//
// By default UCX logs to standard output, where its lines would break the program's own output,
// such as rows of JSON. So its log goes to standard error. Exceptions: the user has set
// UCX_LOG_FILE (or UCX's configuration file), or the program has loaded UCX before.
#pragma once

#include <ucp/api/ucp.h>
#include <string>

#include "transports/posix/library.h"

namespace kolo::inline v0::ucx {

struct Library {
  decltype(&::ucp_get_version) get_version;
  decltype(&::ucp_config_read) config_read;
  decltype(&::ucp_config_modify) config_modify;
  decltype(&::ucp_config_release) config_release;
  decltype(&::ucp_init_version) init_version;
  decltype(&::ucp_cleanup) cleanup;
  decltype(&::ucp_context_print_info) context_print_info;
  decltype(&::ucp_worker_create) worker_create;
  decltype(&::ucp_worker_destroy) worker_destroy;
  decltype(&::ucp_worker_get_address) worker_get_address;
  decltype(&::ucp_worker_release_address) worker_release_address;
  decltype(&::ucp_worker_get_efd) worker_get_efd;
  decltype(&::ucp_worker_arm) worker_arm;
  decltype(&::ucp_worker_flush_nbx) worker_flush_nbx;
  decltype(&::ucp_worker_progress) worker_progress;
  decltype(&::ucp_worker_set_am_recv_handler) worker_set_am_recv_handler;
  decltype(&::ucp_ep_create) ep_create;
  decltype(&::ucp_ep_flush_nbx) ep_flush_nbx;
  decltype(&::ucp_ep_print_info) ep_print_info;
  decltype(&::ucp_am_send_nbx) am_send_nbx;
  decltype(&::ucp_am_recv_data_nbx) am_recv_data_nbx;
  decltype(&::ucp_am_data_release) am_data_release;
  decltype(&::ucp_request_free) request_free;
  decltype(&::ucs_status_string) status_string;
};

// Oldest supported version, and the interface version that is requested, whichever headers kolo was
// built with. 1.13 is the first version whose active messages can be kept, fetched and aligned as
// this transport does. Newer libraries work too.
inline constexpr unsigned kOldestMajor = 1;
inline constexpr unsigned kOldestMinor = 13;

// libucp, loaded at the first call; safe from any thread. For callers that check why() first.
const posix::InstalledLibrary& installed_library();

// Returns why library() would throw; empty if it would not. Loads the library too.
std::string why_no_library();

// Loads the library at the first call; safe from any thread. Error kUnavailable, with the remedy,
// if libucp is missing, is older than 1.13, or lacks a function.
const Library& library();

}  // namespace kolo::inline v0::ucx
