// Selection of this host's addresses, as in KOLO_TCP_HOST. A list of these, separated by commas:
//
//   eth, ib0       the addresses of interfaces whose names begin so; =eth0: of this one alone
//   10.9.0.0/24    the addresses in this network
//   ^docker,virbr  (before the whole list) all addresses but those of the list
//
// The syntax of interfaces is that of NCCL_SOCKET_IFNAME.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "transports/posix/host/addresses.h"

namespace kolo::inline v0::tcp {

// Whether the text is a selection, and not one address or host name. An interface's name is one if
// this host has such an interface.
bool is_selection(const std::string& text, std::span<const posix::InterfaceAddress> interfaces);

// The selected addresses, in their order; empty: none.
std::vector<std::string> select_hosts(const std::string& text,
                                      std::span<const posix::InterfaceAddress> interfaces);

// The message for a selection without an address.
std::string no_selected(const std::string& text,
                        std::span<const posix::InterfaceAddress> interfaces);

// "eth0 10.9.0.1, docker0 172.17.0.1", for messages.
std::string list_text(std::span<const posix::InterfaceAddress> interfaces);

}  // namespace kolo::inline v0::tcp
