// Bidirectional ring: two rings in one, in opposite directions.
//
// Idea. The even segments of every chunk travel to the right and the odd segments to the left. Each
// travels as in a ring (ring.cpp): first as a partial sum to which each rank adds, then as the
// result. So a rank sends to both neighbours and receives from both all the time. This doubles the
// bandwidth if each link has a bandwidth of its own, as in a torus or between network cards. It
// gains nothing if all links share one, such as the memory of a host.
//
// Cost. Bytes and steps of the ring: 2 (n - 1) / n of the data in 2 (n - 1) hops. A chunk of a
// single segment travels one way only. Each direction has two slices, so that a rank works on one
// segment while the other travels: four slices in all.
//
// Source: the ring is that of Patarasuk and Yuan, 2009; both directions at once, Jain and
// Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects", 2010.
#include "collectives/algorithms/bidirectional_ring.h"

#include <algorithm>
#include <utility>

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// Two slices per direction. With two ranks both directions share a channel and its credit.
constexpr int slices_of(int size) { return size == 1 ? 1 : size == 2 ? 2 : 4; }

// One direction: the next rank, and the order of the chunks.
struct Way {
  int rank;
  int size;
  int sign;  // 1: to the right, -1: to the left

  int at(int places) const { return ((rank + sign * places) % size + size) % size; }
  int next() const { return at(1); }
  int previous() const { return at(-1); }
  // The chunk of the rank that is `k` places back.
  int chunk(int k) const { return at(-k); }
};

class Writer {
 public:
  Writer(const ScheduleRequest& request, Collective collective)
      : rank_(request.rank), size_(request.size) {
    schedule_.collective = collective;
    schedule_.algorithm = "bidirectional_ring";
    schedule_.rank = rank_;
    schedule_.size = size_;
    schedule_.chunks = size_;
    schedule_.slices = slices_of(size_);
    schedule_.input = schedule_.output = {0, size_};
    schedule_.contributions = size_;
  }

  Schedule& schedule() { return schedule_; }

  // Adds the step of `make` once per slice, for the direction of the slice: even slices go right.
  template <typename Make>
  void add(const Make& make) {
    for (int slice = 0; slice < schedule_.slices; ++slice) {
      Step step = make(Way{rank_, size_, slice % 2 == 0 ? 1 : -1});
      step.slice = static_cast<std::uint8_t>(slice);
      schedule_.steps.push_back(step);
    }
  }

  void keep_own(bool is_final) {
    add([&](const Way&) { return final_if(is_final, copy(input(rank_), output(rank_))); });
  }

  // Sends and forwards partial sums. This rank's own chunk arrives last; the caller adds that step.
  void pass_sums() {
    add([](const Way& way) { return send(way.next(), input(way.chunk(1))); });
    for (int k = 2; k < size_; ++k) {
      add([k](const Way& way) {
        return receive_reduce_send(way.previous(), way.next(), input(way.chunk(k)));
      });
    }
  }

  // Forwards complete chunks, after this rank has sent its own.
  void pass_results() {
    for (int k = 1; k + 1 < size_; ++k) {
      add([k](const Way& way) {
        return receive_send(way.previous(), way.next(), output(way.chunk(k)));
      });
    }
    add([this](const Way& way) { return receive(way.previous(), output(way.chunk(size_ - 1))); });
  }

 private:
  int rank_;
  int size_;
  Schedule schedule_;
};

// Elements of a chunk in the segments that go right (parity 0) or left (parity 1).
std::size_t share_of(std::size_t elements, std::size_t segment, std::size_t parity) {
  std::size_t share = 0;
  for (std::size_t begin = parity * segment; begin < elements; begin += 2 * segment) {
    share += std::min(segment, elements - begin);
  }
  return share;
}

}  // namespace

Schedule bidirectional_ring_all_reduce(const ScheduleRequest& request) {
  Writer writer(request, Collective::kAllReduce);
  if (request.size == 1) {
    writer.keep_own(true);
    return std::move(writer.schedule());
  }
  writer.pass_sums();
  writer.add([](const Way& way) {
    const int mine = way.rank;
    return final(receive_reduce_copy_send(way.previous(), way.next(), input(mine), output(mine)));
  });
  writer.pass_results();
  return std::move(writer.schedule());
}

Schedule bidirectional_ring_reduce_scatter(const ScheduleRequest& request) {
  Writer writer(request, Collective::kReduceScatter);
  writer.schedule().output = {request.rank, 1};
  if (request.size == 1) {
    writer.keep_own(true);
    return std::move(writer.schedule());
  }
  writer.pass_sums();
  writer.add([](const Way& way) {
    return final(receive_reduce(way.previous(), input(way.rank), output(way.rank)));
  });
  return std::move(writer.schedule());
}

Schedule bidirectional_ring_all_gather(const ScheduleRequest& request) {
  Writer writer(request, Collective::kAllGather);
  writer.schedule().leaves_from_memory = true;
  writer.schedule().input = {request.rank, 1};
  if (request.size > 1) {
    writer.add([](const Way& way) { return send(way.next(), input(way.rank)); });
  }
  writer.keep_own(false);
  if (request.size > 1) writer.pass_results();
  return std::move(writer.schedule());
}

std::size_t bidirectional_ring_reduce_scatter_sent(int rank, int size, std::size_t count) {
  return size == 1 ? 0 : count - chunk_count(count, size, rank);
}

std::size_t bidirectional_ring_all_gather_sent(int rank, int size, std::size_t count,
                                               std::size_t segment) {
  if (size == 1) return 0;
  const std::size_t right = chunk_count(count, size, (rank + 1) % size);
  const std::size_t left = chunk_count(count, size, (rank - 1 + size) % size);
  return count - share_of(right, segment, 0) - share_of(left, segment, 1);
}

std::size_t bidirectional_ring_all_reduce_sent(int rank, int size, std::size_t count,
                                               std::size_t segment) {
  return bidirectional_ring_reduce_scatter_sent(rank, size, count) +
         bidirectional_ring_all_gather_sent(rank, size, count, segment);
}

}  // namespace kolo::inline v0
