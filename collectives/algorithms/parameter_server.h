// Synchronous parameter server, push and pull in one round trip: see parameter_server.cpp for the
// idea.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/schedule.h"

namespace kolo {

struct ParameterServerRequest {
  int rank = 0;
  int size = 1;
  bool can_answer = false;
  bool has_update = false;     // somebody works on the sums between push and pull
  std::vector<int> servers;    // server i holds chunk i
  bool servers_work = false;   // servers are workers too: then every rank is one of `servers`
  bool in_rank_order = false;  // a server that works adds its share in its place, not first
};

// Workers: input and output of `count` elements in servers.size() chunks. Dedicated servers:
// neither. std::invalid_argument for a server out of range or named twice, for no server, and for
// no worker.
Schedule parameter_server_push_pull(const ParameterServerRequest& request);

// The elements that one rank sends.
std::size_t parameter_server_sent(const ParameterServerRequest& request, std::size_t count);

}  // namespace kolo
