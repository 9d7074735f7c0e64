// What the channels of one transport share.
#pragma once

#include <vector>

#include "transports/posix/epoll.h"
#include "transports/ucx/address.h"
#include "transports/ucx/liveness.h"
#include "transports/ucx/worker.h"

namespace kolo::ucx {

struct SharedState {
  SharedState(const Library& ucp, int own_rank, int size)
      : rank(own_rank), lifelines(size, epoll), worker(ucp, size) {}

  void read_what_is_there() {
    if (is_meeting) return;
    constexpr int kFarTooOften = 100'000;
    for (int i = 0; i < kFarTooOften && worker.progress() > 0; ++i) {
    }
  }

  const int rank;
  posix::Epoll epoll;  // of the lifelines and the worker's descriptor
  HostLiveness lifelines;
  Worker worker;
  std::vector<EndpointAddress> cards;  // of all ranks
  bool asks_as_told = false;
  // While ranks meet, none has sent anything but that it is there. UCX (1.13) aborts the process
  // where a peer dies whose connection over tcp is not made yet, in the next progress or as the
  // worker is destroyed: so who learns of an end does neither.
  bool is_meeting = false;
  int holding = 0;  // channels with a segment that waits for another
};

}  // namespace kolo::ucx
