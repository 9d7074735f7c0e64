// What carries a connection of UCX's, and which segments are sent over it without asking the peer.
//
// UCX asks before it sends more than some 8 KiB (rendezvous), which pays where the data then go
// from memory to memory. Over tcp and through a queue in shared memory they do not: there the same
// segments take a third of the time when they are simply sent (eager). And UCX 1.13's rendezvous
// over tcp ends the process now and then (an assertion on acknowledged puts).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::ucx {

// The transports in what ucp_ep_print_info has printed of a connection: "tcp", "cma", ...
std::vector<std::string> transports_in(std::string_view printed);

// The transports in what ucp_context_print_info has printed: all that a rank could take.
std::vector<std::string> resources_in(std::string_view printed);

// Whether short messages between ranks of one host go through queues in shared memory.
bool has_queues(const std::vector<std::string>& resources);

// Whether what counts as sent over `carriers` may still lie with UCX, and leaves only while this
// rank calls it: tcp copies what is short, and the socket may be full. Where nothing is known: yes.
bool keep_sent(const std::vector<std::string>& carriers);

// Segments up to so many bytes are sent eagerly over `carriers`; of longer ones UCX decides.
std::size_t eager_bytes(const std::vector<std::string>& carriers);

}  // namespace kolo::ucx
