// A text that rank 0 announces to all ranks through the launcher: where it serves the store.
//
//   a file   Open MPI with all ranks on one host: in the folder of its session
//   PMIx     Open MPI with several hosts (pmix.h)
//   PMI      MPICH, and srun --mpi=pmi2 (pmi.h)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "transports/error.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"

namespace kolo::inline v0::launch {

// Announces `text`, if this is rank 0. Returns the text of rank 0 on every rank. Every rank calls
// it once. Error kDeadline if other ranks do not come; kUnavailable, with advice, if the launcher's
// service cannot be used.
using Announce = std::function<std::string(const std::string& text, Deadline deadline)>;

// The places at which the store of this process, at `port`, can be reached: a loopback address if
// all ranks are on this host, else the addresses of its interfaces, the best first.
StorePlaces places_of_this_host(std::uint16_t port, bool is_one_host);

// A random name for a job, so that another host with the same address and port is not taken for
// this one.
std::string random_name();

// The announced text of places that have one port: "JOB,PORT,ADDRESS,...", without blanks.
std::string to_text(const StorePlaces& at);
// Error kProtocol if the text is not a result of to_text().
StorePlaces parse_places(std::string_view text);

// Empty if the launcher has no way to announce a text.
Announce announcement(const Settings& settings);

}  // namespace kolo::inline v0::launch
