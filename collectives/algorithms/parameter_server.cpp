// Synchronous parameter server: push and pull in one round trip.
//
// Words. The data (a range of a flat arena of gradients) is cut into one chunk per *server*. A
// *worker* pushes every chunk to its server. Servers are dedicated ranks (one, or several with a
// chunk each), or every rank is both worker and server.
//
// Idea. A server sums the pushed segments as they arrive, and the caller's update (such as an
// optimizer step) works on each complete segment. Then every worker pulls the result at once, while
// later segments are still being pushed.
//
// Cost, for w workers, s servers and n bytes of data. A worker sends n and receives n, for any
// number of workers. A dedicated server sends and receives w n / s. With one server that is w times
// the traffic of a rank in a ring, so the server is the bottleneck. With a server in every rank,
// each rank moves 2 (w - 1) / w n, as in a ring. That takes two steps instead of 2 (w - 1), but w -
// 1 channels per rank.
//
// Order. A sum has the order of the workers by rank, ((0 op 1) op 2) ... A server that works starts
// with its own share, which saves a pass over the first push, unless in_rank_order asks for the
// order of ranks. So the result has the same bits in every run, and on every worker.
//
// Where channels can answer, a pushed segment stays open at the server, which overwrites it in
// place with the result. Stages: push at 0, serve at 1, pull at 2. So two more segments are on
// their way while one is served.
//
// Each half is also a collective of its own. A push ends with the updated sums in the servers'
// memory; a worker is done when its segments are on their way. In a pull, servers send their chunks
// to every worker. A worker sends n in a push and receives n in a pull.
//
// Source: Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014. A
// server in every worker, keys cut into ranges, and push-pull in one operation are those of BytePS
// (Jiang et al., OSDI 2020).
#include "collectives/algorithms/parameter_server.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

namespace kolo {
namespace {

constexpr int kPushStage = 0;
constexpr int kServeStage = 1;
constexpr int kPullStage = 2;

Operand at(Place place, int chunk) { return {place, static_cast<std::uint16_t>(chunk)}; }

void require(const ParameterServerRequest& request) {
  const std::set<int> distinct(request.servers.begin(), request.servers.end());
  if (request.servers.empty()) {
    throw std::invalid_argument(
        "parameter server: no server is named; name at least one rank as a server");
  }
  if (distinct.size() != request.servers.size()) {
    throw std::invalid_argument("parameter server: a rank is named twice as a server");
  }
  if (*distinct.begin() < 0 || *distinct.rbegin() >= request.size) {
    throw std::invalid_argument("parameter server: server ranks must lie in 0 to " +
                                std::to_string(request.size - 1));
  }
  if (!request.servers_work && static_cast<int>(distinct.size()) == request.size) {
    throw std::invalid_argument(
        "parameter server: all ranks are dedicated servers and no worker is left; start more "
        "ranks, or make every rank both worker and server");
  }
  if (request.servers_work && static_cast<int>(distinct.size()) != request.size) {
    throw std::invalid_argument(
        "parameter server: if servers are also workers, every rank must be a server");
  }
}

std::vector<int> workers_of(const ParameterServerRequest& request) {
  std::vector<bool> serves(static_cast<std::size_t>(request.size), false);
  for (const int server : request.servers) serves[static_cast<std::size_t>(server)] = true;
  std::vector<int> workers;
  for (int rank = 0; rank < request.size; ++rank) {
    if (request.servers_work || !serves[static_cast<std::size_t>(rank)]) workers.push_back(rank);
  }
  return workers;
}

// The chunk that request.rank serves, or -1.
int served_chunk(const ParameterServerRequest& request) {
  const auto found = std::find(request.servers.begin(), request.servers.end(), request.rank);
  return found == request.servers.end() ? -1 : static_cast<int>(found - request.servers.begin());
}

// Elements of that chunk; 0 if there is none.
std::size_t served_count(const ParameterServerRequest& request, std::size_t count) {
  const int mine = served_chunk(request);
  return mine < 0 ? 0 : chunk_count(count, static_cast<int>(request.servers.size()), mine);
}

class Writer {
 public:
  Writer(const ParameterServerRequest& request, Collective collective)
      : request_(request),
        workers_(workers_of(request)),
        mine_(served_chunk(request)),
        works_(mine_ < 0 || request.servers_work) {
    const bool is_ordered = request.in_rank_order && collective != Collective::kPull;
    schedule_.collective = collective;
    schedule_.algorithm = is_ordered ? "ordered_parameter_server" : "parameter_server";
    schedule_.rank = request.rank;
    schedule_.size = request.size;
    schedule_.chunks = static_cast<int>(request.servers.size());
    if (collective != Collective::kPull)
      schedule_.contributions = static_cast<int>(workers_.size());
    request_.can_answer = request.can_answer && collective == Collective::kPushPull;
  }

  Schedule push_and_pull() {
    if (works_) schedule_.input = schedule_.output = {0, schedule_.chunks};
    if (works_) push();
    if (mine_ >= 0) serve();
    if (works_) pull();
    return std::move(schedule_);
  }

  // Push alone: the sums stay in the servers' output.
  Schedule push_alone() {
    if (works_) schedule_.input = {0, schedule_.chunks};
    if (mine_ >= 0) schedule_.output = {mine_, 1};
    if (works_) push();
    if (mine_ >= 0) sum_and_update(others(), at(Place::kOutput, mine_));
    return std::move(schedule_);
  }

  Schedule pull_alone() {
    if (mine_ >= 0) schedule_.input = {mine_, 1};
    if (works_) schedule_.output = {0, schedule_.chunks};
    if (mine_ >= 0) give();
    if (works_) pull();
    return std::move(schedule_);
  }

 private:
  Step& add(StepKind kind, int stage, int chunk, int from, int to) {
    Step step;
    step.kind = kind;
    step.stage = static_cast<std::uint8_t>(stage);
    step.chunk = static_cast<std::uint16_t>(chunk);
    step.from = static_cast<std::int16_t>(from);
    step.to = static_cast<std::int16_t>(to);
    schedule_.steps.push_back(step);
    return schedule_.steps.back();
  }

  // The chunks of the other servers. Each rank starts at a different place, so that workers do not
  // all start with the same server.
  std::vector<int> chunks_of_others() const {
    const int n = schedule_.chunks;
    const int first = mine_ >= 0 ? mine_ + 1 : request_.rank % n;
    std::vector<int> chunks;
    for (int k = 0; k < n; ++k) {
      const int chunk = (first + k) % n;
      if (chunk != mine_) chunks.push_back(chunk);
    }
    return chunks;
  }

  // The workers without this rank.
  std::vector<int> others() const {
    std::vector<int> ranks = workers_;
    std::erase(ranks, request_.rank);
    return ranks;
  }

  int server_of(int chunk) const { return request_.servers[static_cast<std::size_t>(chunk)]; }

  void push() {
    const auto kind = request_.can_answer ? StepKind::kSendForAnswer : StepKind::kSend;
    for (const int chunk : chunks_of_others()) {
      add(kind, kPushStage, chunk, kNobody, server_of(chunk)).in = at(Place::kInput, chunk);
    }
  }

  void pull() {
    for (const int chunk : chunks_of_others()) {
      Step& step = request_.can_answer
                       ? add(StepKind::kReceiveAnswer, kPullStage, chunk, kNobody, server_of(chunk))
                       : add(StepKind::kReceive, kPullStage, chunk, server_of(chunk), kNobody);
      step.out = at(Place::kOutput, chunk);
    }
  }

  // Sends the server's chunk to every worker, the next rank first; copies it if the server works
  // too.
  void give() {
    if (works_) {
      Step& copy = add(StepKind::kCopy, kPushStage, mine_, kNobody, kNobody);
      copy.in = at(Place::kInput, mine_);
      copy.out = at(Place::kOutput, mine_);
    }
    std::vector<int> ranks = others();
    std::rotate(ranks.begin(), std::ranges::upper_bound(ranks, request_.rank), ranks.end());
    for (const int worker : ranks)
      add(StepKind::kSend, kPushStage, mine_, kNobody, worker).in = at(Place::kInput, mine_);
  }

  // Returns true if the last push was answered in the step that summed it.
  bool sum_and_update(const std::vector<int>& others, Operand sums) {
    if (others.empty()) {
      Step& copy = add(StepKind::kCopy, kServeStage, mine_, kNobody, kNobody);
      copy.in = at(Place::kInput, mine_);
      copy.out = sums;
      copy.is_final = true;
    }
    const bool last_is_answered = sum(others, sums);
    if (request_.has_update) {
      Step& update = add(StepKind::kUpdate, kServeStage, mine_, kNobody, kNobody);
      update.in = update.out = sums;
    }
    return last_is_answered;
  }

  // Sums the pushes: in the caller's output if the server works too, else in scratch. Then replies
  // to every worker.
  void serve() {
    std::vector<int> others = this->others();
    const Operand sums = at(request_.servers_work ? Place::kOutput : Place::kScratch, mine_);
    if (sum_and_update(others, sums)) others.pop_back();
    for (const int worker : others) {
      Step& reply = request_.can_answer
                        ? add(StepKind::kAnswer, kServeStage, mine_, worker, kNobody)
                        : add(StepKind::kSend, kServeStage, mine_, kNobody, worker);
      reply.in = sums;
    }
  }

  // Writes the complete sum to `sums`, and partial sums to scratch: input and output may be the
  // same memory, and the input is read once. Returns true if the last push was answered in the step
  // that summed it.
  bool sum(const std::vector<int>& others, Operand sums) {
    const Operand partial = at(Place::kScratch, mine_);
    const Operand own = at(Place::kInput, mine_);
    const int before = pushes_before_own(others);  // a single one is combined with the own share
    const bool own_is_last = before > 1 && before == static_cast<int>(others.size());
    bool has_sum = request_.servers_work && before <= 1;
    Operand so_far = has_sum ? own : partial;
    bool is_answered = false;
    int pushes = 0;
    for (const int worker : others) {
      const bool is_last = worker == others.back() && !own_is_last;
      is_answered = is_last && has_sum && request_.can_answer && !request_.has_update;
      const auto kind = is_answered ? StepKind::kReceiveReduceAnswer
                        : has_sum   ? StepKind::kReceiveReduce
                                    : StepKind::kReceive;
      Step& step = add(kind, kServeStage, mine_, worker, kNobody);
      if (has_sum) step.in = so_far;
      step.out = is_last ? sums : partial;
      step.is_final = is_last;
      step.is_held = request_.can_answer && !is_answered;
      step.is_in_last = before == 1 && pushes == 0;
      has_sum = true;
      so_far = partial;
      if (++pushes == before && before > 1) add_own(own_is_last, partial, sums);
    }
    return is_answered;
  }

  // The number of pushes before a working server's own share, in the requested order.
  int pushes_before_own(const std::vector<int>& others) const {
    if (!request_.servers_work || !request_.in_rank_order) return 0;
    return static_cast<int>(
        std::ranges::count_if(others, [&](int rank) { return rank < request_.rank; }));
  }

  // Adds the own share after the partial sum: in scratch, or (`is_last`) in the complete sum.
  void add_own(bool is_last, Operand partial, Operand sums) {
    const Operand own = at(Place::kInput, mine_);
    if (is_last) {
      Step& copy = add(StepKind::kCopy, kServeStage, mine_, kNobody, kNobody);
      copy.in = own;
      copy.out = sums;
    }
    Step& step = add(StepKind::kReduce, kServeStage, mine_, kNobody, kNobody);
    step.in = is_last ? partial : own;
    step.out = is_last ? sums : partial;
    step.is_in_last = !is_last;
    step.is_final = is_last;
  }

  ParameterServerRequest request_;
  std::vector<int> workers_;
  int mine_;    // the chunk that this rank serves, or -1
  bool works_;  // this rank is a worker, perhaps also a server
  Schedule schedule_;
};

}  // namespace

Schedule parameter_server_push_pull(const ParameterServerRequest& request) {
  require(request);
  return Writer(request, Collective::kPushPull).push_and_pull();
}

Schedule parameter_server_push(const ParameterServerRequest& request) {
  require(request);
  return Writer(request, Collective::kPush).push_alone();
}

Schedule parameter_server_pull(const ParameterServerRequest& request) {
  require(request);
  return Writer(request, Collective::kPull).pull_alone();
}

std::size_t parameter_server_sent(const ParameterServerRequest& request, std::size_t count) {
  return parameter_server_push_sent(request, count) + parameter_server_pull_sent(request, count);
}

std::size_t parameter_server_push_sent(const ParameterServerRequest& request, std::size_t count) {
  const int mine = served_chunk(request);
  if (mine >= 0 && !request.servers_work) return 0;
  return count - served_count(request, count);
}

std::size_t parameter_server_pull_sent(const ParameterServerRequest& request, std::size_t count) {
  const std::size_t others = workers_of(request).size() - (request.servers_work ? 1 : 0);
  return others * served_count(request, count);
}

}  // namespace kolo
