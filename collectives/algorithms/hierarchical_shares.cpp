// Hierarchical reduce-scatter and all-gather: inside hosts, then across hosts, and the reverse.
//
// Words. Every rank's chunk has a *keeper* on every host. On the owner's host it is the owner. On
// another host it is the rank with the owner's index there (modulo the number of ranks of that
// host).
//
// Idea. Reduce-scatter: on every host all ranks send their shares of a chunk to its keeper, which
// adds them up and sends the host's sum to the owner. All-gather: the owner sends its chunk to all
// keepers, which send it to all other ranks of their hosts.
//
// Cost, for m bytes on h hosts of k ranks. A rank sends (n - 1) / n m, the minimum of any
// algorithm; (h - 1) / h m / k of it leaves its host. Every chunk enters or leaves every other host
// once, which is the minimum; with a direct algorithm it does so k times. Two hops, for any size.
//
// A host works on the chunks of one host after the other. In one *round* it works on as many chunks
// as it has ranks. The shares for a round are sent one round earlier, and its results are received
// one round later. Everything runs for two slices.
//
// Source: as hierarchical.cpp; the two hops are those of node-aware collectives (Bienz, Olson and
// Gropp, "Node-aware improvements to allreduce", 2019).
#include <algorithm>
#include <vector>

#include "collectives/algorithms/hierarchical.h"
#include "collectives/algorithms/hierarchical_writer.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

constexpr int kSlices = 2;

// Chunks of the ranks of `host`, from index `first` on: one for each rank of the working host.
struct Round {
  int host = 0;
  int first = 0;
  int slice = 0;
};

class Shares : public HierarchicalWriter {
 public:
  Shares(const ScheduleRequest& request, Collective collective)
      : HierarchicalWriter(request, collective) {
    schedule().chunks = request.size;
    schedule().slices = kSlices;
    schedule().input = schedule().output = {0, request.size};
  }

 protected:
  int keeper(int host, int chunk) const {
    return lanes().rank(host, lanes().index_of(chunk) % lanes().size(host));
  }

  // The chunk that `neighbour` keeps in a round; kNobody if no chunk is left for it.
  int kept(const Round& round, int neighbour) const {
    const int index = round.first + lanes().index_of(neighbour);
    return index < lanes().size(round.host) ? lanes().rank(round.host, index) : kNobody;
  }

  void add_rounds(int host, std::vector<Round>& rounds) const {
    for (int first = 0; first < lanes().size(host); first += lanes().size(this->host())) {
      for (int slice = 0; slice < kSlices; ++slice) rounds.push_back({host, first, slice});
    }
  }
};

class ReduceScatter : public Shares {
 public:
  explicit ReduceScatter(const ScheduleRequest& request)
      : Shares(request, Collective::kReduceScatter) {
    schedule().output = {rank(), 1};
  }

  // The chunks of this host come last, since they need the sums of all other hosts.
  Schedule write() {
    std::vector<Round> rounds;
    for (int places = 1; places <= lanes().hosts(); ++places) {
      add_rounds(lanes().after(host(), places), rounds);
    }
    give(rounds.front());
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      if (i + 1 < rounds.size()) give(rounds[i + 1]);
      keep(rounds[i]);
    }
    return std::move(schedule());
  }

 private:
  void give(const Round& round) {
    at(0, round.slice);
    for (const int neighbour : receivers()) {
      const int chunk = kept(round, neighbour);
      if (chunk != kNobody) add(send(neighbour, input(chunk)));
    }
  }

  void keep(const Round& round) {
    at(0, round.slice);
    const int chunk = kept(round, rank());
    if (chunk == kNobody) return;
    if (round.host != host()) return send_sum(chunk, chunk);
    std::vector<int> all = givers();
    for (int places = 1; places < lanes().hosts(); ++places) {
      all.push_back(keeper(lanes().after(host(), lanes().hosts() - places), chunk));
    }
    finish(chunk, all);
  }
};

class AllGather : public Shares {
 public:
  explicit AllGather(const ScheduleRequest& request) : Shares(request, Collective::kAllGather) {
    schedule().leaves_from_memory = true;
    schedule().input = {rank(), 1};
  }

  Schedule write() {
    send_own();
    std::vector<Round> rounds;
    for (int places = 0; places < lanes().hosts(); ++places) {
      add_rounds(lanes().after(host(), lanes().hosts() - places), rounds);
    }
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      keep(rounds[i]);
      if (i > 0) take(rounds[i - 1]);
    }
    take(rounds.back());
    return std::move(schedule());
  }

 private:
  void send_own() {
    for (int slice = 0; slice < kSlices; ++slice) {
      at(0, slice);
      for (int places = 1; places < lanes().hosts(); ++places) {
        add(send(keeper(lanes().after(host(), places), rank()), input(rank())));
      }
      add(copy(input(rank()), output(rank())));
    }
  }

  void keep(const Round& round) {
    at(0, round.slice);
    const int chunk = kept(round, rank());
    if (chunk == kNobody) return;
    if (chunk != rank()) add(receive(chunk, output(chunk)));
    for (const int neighbour : receivers()) {
      add(send(neighbour, chunk == rank() ? input(chunk) : output(chunk)));
    }
  }

  void take(const Round& round) {
    at(0, round.slice);
    for (const int neighbour : givers()) {
      const int chunk = kept(round, neighbour);
      if (chunk != kNobody) add(receive(neighbour, output(chunk)));
    }
  }
};

// Elements of the chunks that request.rank keeps for owners on other hosts.
std::size_t kept_for_others(const ScheduleRequest& request, const Lanes& lanes, std::size_t count) {
  const int host = lanes.host_of(request.rank);
  std::size_t elements = 0;
  for (int owner = 0; owner < request.size; ++owner) {
    const int index = lanes.index_of(owner) % lanes.size(host);
    if (lanes.host_of(owner) != host && index == lanes.index_of(request.rank)) {
      elements += chunk_count(count, request.size, owner);
    }
  }
  return elements;
}

}  // namespace

Schedule hierarchical_reduce_scatter(const ScheduleRequest& request) {
  return ReduceScatter(request).write();
}

Schedule hierarchical_all_gather(const ScheduleRequest& request) {
  return AllGather(request).write();
}

Traffic hierarchical_reduce_scatter_traffic(const ScheduleRequest& request, std::size_t count) {
  const std::size_t owned = chunk_count(count, request.size, request.rank);
  return {count - owned, kept_for_others(request, Lanes(request), count)};
}

Traffic hierarchical_all_gather_traffic(const ScheduleRequest& request, std::size_t count) {
  const Lanes lanes(request);
  const std::size_t owned = chunk_count(count, request.size, request.rank);
  const auto others = static_cast<std::size_t>(lanes.size(lanes.host_of(request.rank)) - 1);
  const auto across = static_cast<std::size_t>(lanes.hosts() - 1) * owned;
  return {across + others * (owned + kept_for_others(request, lanes, count)), across};
}

}  // namespace kolo::inline v0
