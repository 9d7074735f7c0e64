// The functions of libucp that are used, by address: the library is loaded, never linked.
//
// UCX writes its warnings and errors to standard output, which belongs to the program: rows of JSON
// among such lines are not to be read. So they go to standard error, unless the user says where
// (UCX_LOG_FILE, or UCX's file of settings), or the program has loaded UCX before and has its log
// as it wants it.
#pragma once

#include <ucp/api/ucp.h>
#include <string>

#include "transports/posix/library.h"

namespace kolo::ucx {

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

// What is asked of a library, whichever headers kolo was built with: a newer one serves as well,
// and nothing newer is used.
inline constexpr unsigned kOldestMajor = 1;
inline constexpr unsigned kOldestMinor = 13;

// libucp, loaded at the first call; from any thread. It is for who asks why() first.
const posix::InstalledLibrary& installed_library();

// Why library() would throw; empty: it would not. Loads it as well.
std::string why_no_library();

// Loads it at the first call; from any thread. Error kUnavailable where it is not there, is older
// than 1.13, or lacks a function: which, and what to do.
const Library& library();

}  // namespace kolo::ucx
