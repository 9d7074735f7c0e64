// Hierarchical broadcast, reduce and barrier: inside hosts, then across hosts.
//
// Words. Lane c consists of one rank of every host (lanes.h); the root is in lane 0. The ranks of
// lane c own chunk c of the data.
//
// Idea. Broadcast: the root scatters the chunks to their owners on its host. Every lane broadcasts
// its chunk across hosts, over a double tree. On every host the owners send their chunks to all
// other ranks. Reduce: the same paths backwards, with a sum inside each host first. Barrier: on
// every host all ranks notify one *leader*; the leaders run a barrier, and then notify their hosts.
//
// Cost, for m bytes on h hosts. Every host receives m once, and sends m at most once; both are the
// minimum. In a broadcast every rank sends about m, where a single leader would send m to every
// other rank of its host. In a reduce every rank sends m. Hops: one from the root, log2(h) + 1
// across hosts, one to the other ranks. With one host a broadcast is scatter and all-gather.
//
// Every hop has a stage, and the program is written from the last stage to the first, for one half
// of the data after the other: a turn receives what the previous turn sent.
//
// Source: Traeff and Hunold, "Decomposing MPI collectives for exploiting multi-lane communication",
// 2020 (full-lane broadcast and reduce); the double tree is that of Sanders, Speck and Traeff;
// leaders in a barrier are those of Open MPI's HAN.
#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/double_tree.h"
#include "collectives/algorithms/hierarchical.h"
#include "collectives/algorithms/hierarchical_writer.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// The schedule of a lane across hosts: its ranks are hosts.
Schedule across_hosts(const ScheduleRequest& request, const Lanes& lanes,
                      Schedule (*write)(const ScheduleRequest&)) {
  return write({.rank = lanes.host_of(request.rank),
                .size = lanes.hosts(),
                .root = lanes.host_of(request.root)});
}

class Rooted : public HierarchicalWriter {
 public:
  Rooted(const ScheduleRequest& request, Collective collective,
         Schedule (*write)(const ScheduleRequest&))
      : HierarchicalWriter(request, collective, true),
        root_(request.root),
        across_(across_hosts(request, lanes(), write)) {
    schedule().chunks = lanes().lanes() * across_.chunks;
  }

 protected:
  bool is_root() const { return rank() == root_; }
  bool is_at_home() const { return host() == lanes().host_of(root_); }
  int chunk(int lane, int part) const { return lane * across_.chunks + part; }
  // The stage of a step across hosts: one later, for the hop before it.
  static int stage_of(const Step& step) { return 1 + step.stage; }

  int root_;
  Schedule across_;
};

class Broadcast : public Rooted {
 public:
  explicit Broadcast(const ScheduleRequest& request)
      : Rooted(request, Collective::kBroadcast, double_tree_broadcast) {
    const ChunkRange all{0, schedule().chunks};
    schedule().output = all;
    schedule().leaves_from_memory = true;
    if (is_root()) schedule().input = all;
  }

  Schedule write() {
    for (int part = 0; part < across_.chunks; ++part) write(part);
    return std::move(schedule());
  }

 private:
  void write(int part) {
    int arrival = 1;
    for (const Step& step : across_.steps) {
      if (step.chunk == part && step.kind == StepKind::kReceive) arrival = stage_of(step);
    }
    at(arrival + 1);
    for (const int owner : givers()) {
      const int lane = lanes().lane_of(owner);
      if (lane != kNoLane && !is_root()) add(receive(owner, output(chunk(lane, part))));
    }
    at(arrival);
    if (has_lane()) pass_on(part, arrival);
    at(0);
    for (const int owner : receivers()) {
      const int lane = lanes().lane_of(owner);
      if (lane != kNoLane && is_root()) add(send(owner, output(chunk(lane, part))));
    }
  }

  void pass_on(int part, int arrival) {
    const Operand mine = output(chunk(lane(), part));
    if (is_at_home() && !is_root()) add(receive(root_, mine));
    for (const Step& of_hosts : across_.steps) {
      if (of_hosts.chunk != part) continue;
      Step step = in_lane(of_hosts, lane());
      step.chunk = mine.chunk;
      (step.kind == StepKind::kReceive ? step.out : step.in) = mine;
      at(stage_of(of_hosts));
      add(step);
    }
    at(arrival);
    for (const int other : receivers()) {
      if (other != root_) add(send(other, mine));
    }
  }
};

class Reduce : public Rooted {
 public:
  explicit Reduce(const ScheduleRequest& request)
      : Rooted(request, Collective::kReduce, double_tree_reduce) {
    const ChunkRange all{0, schedule().chunks};
    schedule().input = all;
    if (is_root()) schedule().output = all;
  }

  Schedule write() {
    for (int part = 0; part < across_.chunks; ++part) write(part);
    return std::move(schedule());
  }

 private:
  void write(int part) {
    int departure = 1;  // stage in which the host's sum leaves
    for (const Step& step : across_.steps) {
      if (step.chunk == part) departure = stage_of(step);
    }
    at(departure + 1);
    for (const int owner : givers()) {
      const int lane = lanes().lane_of(owner);
      if (lane != kNoLane && is_root()) add(receive(owner, output(chunk(lane, part))));
    }
    at(departure);
    if (has_lane()) pass_on(part);
    at(departure - 1);
    for (const int owner : receivers()) {
      const int lane = lanes().lane_of(owner);
      if (lane != kNoLane) add(send(owner, input(chunk(lane, part))));
    }
  }

  void pass_on(int part) {
    const int mine = chunk(lane(), part);
    if (lanes().hosts() == 1)
      return is_root() ? finish(mine, givers()) : send_sum(mine, root_, true);
    for (const Step& of_hosts : across_.steps) {
      if (of_hosts.chunk == part) add_across(in_lane(of_hosts, lane()), mine);
    }
  }

  void add_across(Step step, int mine) {
    if (step.kind == StepKind::kSend) return send_sum(mine, step.to);
    step.in = step.in.place == Place::kInput ? sum(mine) : scratch(mine);
    step.chunk = step.in.chunk;
    if (step.out.place == Place::kScratch) step.out = scratch(mine);
    if (step.out.place == Place::kOutput && is_root()) step.out = output(mine);
    if (step.out.place == Place::kOutput && !is_root()) {
      step = final(receive_reduce_send(step.from, root_, step.in));
    }
    add(step);
  }
};

constexpr int kLeader = 0;  // index of the leader on its host

}  // namespace

Schedule hierarchical_broadcast(const ScheduleRequest& request) {
  return Broadcast(request).write();
}

Schedule hierarchical_reduce(const ScheduleRequest& request) { return Reduce(request).write(); }

Schedule hierarchical_barrier(const ScheduleRequest& request) {
  HierarchicalWriter writer(request, Collective::kBarrier);
  writer.schedule().chunks = kBarrierCount;
  const int leader = writer.lanes().rank(writer.host(), kLeader);
  if (request.rank != leader) {
    writer.add(send(leader, scratch(0)));
    writer.add(receive(leader, scratch(1)));
    return std::move(writer.schedule());
  }
  for (const int other : writer.givers()) writer.add(receive(other, scratch(1)));
  for (const Step& step : across_hosts(request, writer.lanes(), dissemination_barrier).steps) {
    writer.add(writer.in_lane(step, kLeader));
  }
  for (const int other : writer.receivers()) writer.add(send(other, scratch(0)));
  return std::move(writer.schedule());
}

Traffic hierarchical_broadcast_traffic(const ScheduleRequest& request, std::size_t count) {
  const Lanes lanes(request, true);
  const int mine = lanes.lane_of(request.rank);
  if (mine == kNoLane) return {};
  const int host = lanes.host_of(request.rank);
  const int home = lanes.host_of(request.root);
  const int parts = across_hosts(request, lanes, double_tree_broadcast).chunks;
  Traffic traffic;
  std::size_t owned = 0;
  for (int part = 0; part < parts; ++part) {
    const std::size_t length = chunk_count(count, lanes.lanes() * parts, mine * parts + part);
    const auto first = static_cast<std::size_t>(part);
    // The number of hosts that this host sends this half to: the elements that it would send for
    // one more element in this half.
    const std::size_t copies = double_tree_broadcast_sent(host, lanes.hosts(), home, first + 1) -
                               double_tree_broadcast_sent(host, lanes.hosts(), home, first);
    owned += length;
    traffic.across += copies * length;
  }
  const int others = lanes.size(host) - 1;
  const bool is_root = request.rank == request.root;
  const auto copies = static_cast<std::size_t>(host == home && !is_root ? others - 1 : others);
  traffic.sent = traffic.across + copies * owned + (is_root ? count - owned : 0);
  return traffic;
}

Traffic hierarchical_reduce_traffic(const ScheduleRequest& request, std::size_t count) {
  const Lanes lanes(request, true);
  const int mine = lanes.lane_of(request.rank);
  const int parts = across_hosts(request, lanes, double_tree_reduce).chunks;
  std::size_t owned = 0;
  for (int part = 0; part < parts && mine != kNoLane; ++part) {
    owned += chunk_count(count, lanes.lanes() * parts, mine * parts + part);
  }
  const bool is_at_home = lanes.host_of(request.rank) == lanes.host_of(request.root);
  return {request.rank == request.root ? count - owned : count, is_at_home ? 0 : owned};
}

Traffic hierarchical_barrier_traffic(const ScheduleRequest& request) {
  const Lanes lanes(request);
  if (lanes.index_of(request.rank) != kLeader) return {1, 0};
  const auto rounds = static_cast<std::size_t>(dissemination_barrier_sent(lanes.hosts()));
  const auto others = static_cast<std::size_t>(lanes.size(lanes.host_of(request.rank)) - 1);
  return {rounds + others, rounds};
}

}  // namespace kolo::inline v0
