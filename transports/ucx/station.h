// What the channels of one transport share.
#pragma once

#include <vector>

#include "transports/posix/epoll.h"
#include "transports/ucx/card.h"
#include "transports/ucx/lifeline.h"
#include "transports/ucx/worker.h"

namespace kolo::ucx {

struct Station {
  Station(int own_rank, int size) : rank(own_rank), lifelines(size, epoll), worker(size) {}

  const int rank;
  posix::Epoll epoll;  // of the lifelines and the worker's descriptor
  Lifelines lifelines;
  Worker worker;
  std::vector<Card> cards;  // of all ranks
};

}  // namespace kolo::ucx
