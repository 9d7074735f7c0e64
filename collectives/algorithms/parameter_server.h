// Synchronous parameter server, push and pull in one round trip or each by itself: see
// parameter_server.cpp for the idea.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/schedule.h"

namespace kolo {

struct ParameterServerRequest {
  int rank = 0;
  int size = 1;
  bool can_answer = false;
  bool has_update = false;     // of a push: somebody works on the sums when they are complete
  std::vector<int> servers;    // server i holds chunk i
  bool servers_work = false;   // servers are workers too: then every rank is one of `servers`
  bool in_rank_order = false;  // a server that works adds its share in its place, not first
};

// Workers: input and output of `count` elements in servers.size() chunks. Dedicated servers:
// neither. std::invalid_argument for a server out of range or named twice, for no server, and for
// no worker.
Schedule parameter_server_push_pull(const ParameterServerRequest& request);

// Workers give `count` elements and have then done; server i gets chunk i of the reduction.
// `can_answer` is of no use. Throws as parameter_server_push_pull does.
Schedule parameter_server_push(const ParameterServerRequest& request);

// Server i gives chunk i; workers get `count` elements. Neither `can_answer` nor `has_update` nor
// `in_rank_order` is of use. Throws as parameter_server_push_pull does.
Schedule parameter_server_pull(const ParameterServerRequest& request);

// The elements that one rank sends: pushed and pulled, or one of the two.
std::size_t parameter_server_sent(const ParameterServerRequest& request, std::size_t count);
std::size_t parameter_server_push_sent(const ParameterServerRequest& request, std::size_t count);
std::size_t parameter_server_pull_sent(const ParameterServerRequest& request, std::size_t count);

}  // namespace kolo
