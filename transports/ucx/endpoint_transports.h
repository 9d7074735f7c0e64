// UCX transports of a connection, and the segment sizes that are sent eagerly over them.
//
// By default UCX uses rendezvous for more than some 8 KiB. That pays if the data then go directly
// from memory to memory. Over TCP and shared memory queues they do not: there the same segments
// take a third of the time when sent eagerly. In addition, UCX 1.13's rendezvous over TCP sometimes
// aborts the process (an assertion on acknowledged puts).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0::ucx {

// Parses the output of ucp_ep_print_info: the transports of a connection, "tcp", "cma", ...
std::vector<std::string> transports_in(std::string_view printed);

// Parses the output of ucp_context_print_info: all transports that a rank may use.
std::vector<std::string> resources_in(std::string_view printed);

// True if short messages between ranks of one host go through queues in shared memory.
bool has_queues(const std::vector<std::string>& resources);

// True if data that count as sent over `carriers` may still be in UCX and leave only while this
// rank calls it: tcp copies short messages while the socket is full. True if `carriers` is empty.
bool keep_sent(const std::vector<std::string>& carriers);

// Segments up to this size are sent eagerly over `carriers`. For longer ones UCX decides.
std::size_t eager_bytes(const std::vector<std::string>& carriers);

}  // namespace kolo::inline v0::ucx
