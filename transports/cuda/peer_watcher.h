// Thread that frees the streams of a rank which wait for a peer that has ended.
//
// The rank's own threads may be inside the driver and make no progress: in cudaStreamSynchronize,
// or in a call that finds a stream's queue full. This thread calls no driver. It polls the sockets
// of the peers, and frees streams by writing into the words that they wait for.
//
// Cost: a thread that sleeps until a peer closes its transport or ends. From then on it looks every
// 10 ms, since late work of the peer's device can overwrite the words.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "transports/cuda/stream_channel.h"

namespace kolo::inline v0::cuda {

class PeerWatcher {
 public:
  // `socket`: closes when the peer's process ends. The peer also sends a message there when it
  // closes its transport. Socket and channel must outlive the watcher.
  struct Peer {
    int socket = -1;
    DeviceChannel* channel = nullptr;
  };

  // Error kSystem if no thread can be started.
  explicit PeerWatcher(std::vector<Peer> peers);
  ~PeerWatcher();
  PeerWatcher(const PeerWatcher&) = delete;
  PeerWatcher& operator=(const PeerWatcher&) = delete;

 private:
  void watch();
  void free_streams() noexcept;

  const std::vector<Peer> peers_;
  std::atomic<bool> is_stopped_ = false;
  std::thread thread_;
};

}  // namespace kolo::inline v0::cuda
