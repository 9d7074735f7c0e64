// Makes one connection between every pair of ranks.
//
// Every rank listens first and publishes its address after; of each pair the higher rank connects
// and the lower accepts. Both say hello. Who connects and does not say it in time, or says anything
// else, is a stranger and dropped; when too many of them wait the oldest goes. With the last
// connection made the listener closes.
#pragma once

#include <string>
#include <vector>

#include "transports/posix/socket.h"
#include "transports/tcp.h"

namespace kolo::tcp {

struct Peer {
  posix::Descriptor socket;  // not open for oneself
  std::string address;       // "10.0.0.2:40133": for messages
  bool is_on_this_host = false;
};

std::vector<Peer> connect_all(const TransportRequest& request, const TcpSettings& settings);

}  // namespace kolo::tcp
