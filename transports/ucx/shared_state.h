// State that the channels of one transport share.
#pragma once

#include <vector>

#include "transports/posix/epoll.h"
#include "transports/ucx/address.h"
#include "transports/ucx/liveness.h"
#include "transports/ucx/worker.h"

namespace kolo::inline v0::ucx {

struct SharedState {
  SharedState(const Library& ucp, int own_rank, int size)
      : rank(own_rank), liveness(size, epoll), worker(ucp, size) {}

  void read_what_is_there() {
    if (is_meeting) return;
    constexpr int kFarTooOften = 100'000;
    for (int i = 0; i < kFarTooOften && worker.progress() > 0; ++i) {
    }
  }

  const int rank;
  posix::Epoll epoll;  // watches the liveness sockets and the worker's descriptor
  HostLiveness liveness;
  Worker worker;
  std::vector<EndpointAddress> addresses;  // of all ranks
  bool asks_as_told = false;
  // True while ranks connect; no data are sent before that is done. UCX (1.13) aborts the process
  // if a peer dies whose TCP connection is not complete: in the next progress, or when the worker
  // is destroyed. So a rank that learns of a peer's end in this phase calls neither.
  bool is_meeting = false;
  int holding = 0;  // channels that hold a segment back until the next one (kMore)
};

}  // namespace kolo::inline v0::ucx
