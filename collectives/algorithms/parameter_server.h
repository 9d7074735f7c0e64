// Synchronous parameter server, with push and pull in one round trip or as separate collectives:
// see parameter_server.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

struct ParameterServerRequest {
  int rank = 0;
  int size = 1;
  bool can_answer = false;
  bool has_update = false;      // of a push: an update changes the complete sums
  std::vector<int> servers;     // the first holds the first chunks
  bool servers_work = false;    // servers are workers too; then `servers` lists every rank
  int dedicated = 0;            // with servers_work: the first servers, which do not work
  std::vector<int> parts = {};  // chunks of each server; empty: one each
  bool in_rank_order = false;   // a working server adds its share in rank order, not first
};

// Workers: input and output of `count` elements in one chunk for each part. Dedicated servers:
// neither. std::invalid_argument: a server is out of range, named twice or without a part, or there
// is no server or no worker.
Schedule parameter_server_push_pull(const ParameterServerRequest& request);

// Workers give `count` elements; a server gets its chunks of the reduction. Ignores `can_answer`.
// Throws as parameter_server_push_pull does.
Schedule parameter_server_push(const ParameterServerRequest& request);

// A server gives its chunks; workers get `count` elements. Ignores `can_answer`, `has_update` and
// `in_rank_order`. Throws as parameter_server_push_pull does.
Schedule parameter_server_pull(const ParameterServerRequest& request);

// Elements that one rank sends: in push_pull, push, and pull.
std::size_t parameter_server_sent(const ParameterServerRequest& request, std::size_t count);
std::size_t parameter_server_push_sent(const ParameterServerRequest& request, std::size_t count);
std::size_t parameter_server_pull_sent(const ParameterServerRequest& request, std::size_t count);

}  // namespace kolo::inline v0
