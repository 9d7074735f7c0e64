// Listener of rank 0 of two. Nothing listens at the endpoint address of its peer.
#pragma once

#include <chrono>
#include <string>

#include "transports/posix/epoll.h"
#include "transports/rendezvous.h"
#include "transports/tcp/address.h"
#include "transports/tcp/listener.h"
#include "transports/tcp/transport.h"

namespace kolo::fuzz {

inline constexpr int kRank = 0;
inline constexpr int kPeer = 1;

inline tcp::Listener make_listener(posix::Epoll& watch) {
  tcp::EndpointAddress peer;
  peer.identity = "elsewhere";
  peer.hosts = {"127.0.0.1"};
  peer.port = 1;
  TcpSettings settings;
  settings.host = "127.0.0.1";
  settings.on_its_way = std::chrono::milliseconds(0);
  peer.segment_bytes = settings.segment_bytes;
  const auto store = make_local_store();
  store->set("address/1", tcp::to_text(peer));
  return {{kRank, 2, store, Clock::now() + std::chrono::seconds(20), 0, 2}, settings, watch};
}

}  // namespace kolo::fuzz
