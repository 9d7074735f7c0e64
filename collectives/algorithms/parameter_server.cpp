// Synchronous parameter server: push and pull in one round trip.
//
// Words. The data (a range of a flat arena of gradients) is cut into equal chunks. A *server* holds
// one or more of them. A *worker* pushes every chunk to its server. Servers are dedicated ranks,
// or the workers, or both.
//
// Idea. A server sums the pushed segments as they arrive, and the caller's update (such as an
// optimizer step) works on each complete segment. Then every worker pulls the result at once, while
// later segments are still being pushed.
//
// Servers with several chunks. A turn then has *rounds*: as many as the largest server has chunks.
// A server works on at most one chunk in a round, and a smaller server rests in some rounds. So
// all servers are busy until the end, each in proportion to its share. Push, serve and pull of a
// chunk are one round apart. With one chunk each there is one round, and they are a turn apart.
//
// Cost, for w workers, s servers and n bytes of data. A worker sends n and receives n, for any
// number of workers. A dedicated server sends and receives w n / s. With one server that is w times
// the traffic of a rank in a ring, so the server is the bottleneck. With a server in every rank,
// each rank moves 2 (w - 1) / w n, as in a ring. That takes two steps instead of 2 (w - 1), but w -
// 1 channels per rank. With s dedicated servers and a smaller one in each worker, every rank can
// move 2 w (w - 1) / (w^2 + s w - 2 s) n, which is less (balanced_plan() in options.h).
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
// server in every worker, uneven shares, keys cut into ranges, and push-pull in one operation are
// those of BytePS (Jiang et al., OSDI 2020).
#include "collectives/algorithms/parameter_server.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kolo::inline v0 {
namespace {

// Rounds after the push of a chunk.
constexpr int kServeDelay = 1;
constexpr int kPullDelay = 2;

constexpr int kMostChunks = 1 << 15;

Operand at(Place place, int chunk) { return {place, static_cast<std::uint16_t>(chunk)}; }

// Throws unless each server has a part.
void require_parts(const ParameterServerRequest& request) {
  if (request.parts.empty()) return;
  if (request.parts.size() != request.servers.size()) {
    throw std::invalid_argument("parameter server: there are " +
                                std::to_string(request.parts.size()) + " entries in parts for " +
                                std::to_string(request.servers.size()) + " servers");
  }
  if (*std::ranges::min_element(request.parts) < 1) {
    throw std::invalid_argument("parameter server: a server has no part; each holds at least one");
  }
  if (std::reduce(request.parts.begin(), request.parts.end(), std::int64_t{0}) > kMostChunks) {
    throw std::invalid_argument("parameter server: the parts of all servers add up to more than " +
                                std::to_string(kMostChunks));
  }
}

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
  const int dedicated =
      request.servers_work ? request.dedicated : static_cast<int>(distinct.size());
  if (dedicated == request.size) {
    throw std::invalid_argument(
        "parameter server: all ranks are dedicated servers and no worker is left; start more "
        "ranks, or make every rank both worker and server");
  }
  if (request.servers_work && static_cast<int>(distinct.size()) != request.size) {
    throw std::invalid_argument(
        "parameter server: if servers are also workers, every rank must be a server");
  }
  require_parts(request);
}

// The dedicated servers come first in the list.
bool is_dedicated(const ParameterServerRequest& request, int server) {
  return !request.servers_work || server < request.dedicated;
}

std::vector<int> workers_of(const ParameterServerRequest& request) {
  std::vector<bool> works(static_cast<std::size_t>(request.size), true);
  for (int i = 0; i < static_cast<int>(request.servers.size()); ++i) {
    if (!is_dedicated(request, i)) continue;
    works[static_cast<std::size_t>(request.servers[static_cast<std::size_t>(i)])] = false;
  }
  std::vector<int> workers;
  for (int rank = 0; rank < request.size; ++rank) {
    if (works[static_cast<std::size_t>(rank)]) workers.push_back(rank);
  }
  return workers;
}

// The place of request.rank among the servers, or -1.
int server_at(const ParameterServerRequest& request) {
  const auto found = std::find(request.servers.begin(), request.servers.end(), request.rank);
  return found == request.servers.end() ? -1 : static_cast<int>(found - request.servers.begin());
}

bool works(const ParameterServerRequest& request) {
  const int mine = server_at(request);
  return mine < 0 || !is_dedicated(request, mine);
}

// The chunks of each server.
std::vector<ChunkRange> shares_of(const ParameterServerRequest& request) {
  std::vector<ChunkRange> shares;
  int first = 0;
  for (std::size_t i = 0; i < request.servers.size(); ++i) {
    const int count = request.parts.empty() ? 1 : request.parts[i];
    shares.push_back({first, count});
    first += count;
  }
  return shares;
}

// Elements that request.rank serves.
std::size_t served_count(const ParameterServerRequest& request, std::size_t count) {
  const int mine = server_at(request);
  if (mine < 0) return 0;
  const std::vector<ChunkRange> shares = shares_of(request);
  const ChunkRange& share = shares[static_cast<std::size_t>(mine)];
  const int chunks = shares.back().first + shares.back().count;
  return chunk_begin(count, chunks, share.first + share.count) -
         chunk_begin(count, chunks, share.first);
}

// A round of a turn, and the turns by which it lies behind.
struct Round {
  int round = 0;
  int stage = 0;
};

class Writer {
 public:
  Writer(const ParameterServerRequest& request, Collective collective)
      : request_(request),
        workers_(workers_of(request)),
        shares_(shares_of(request)),
        mine_(server_at(request)),
        works_(works(request)) {
    const bool is_ordered = request.in_rank_order && collective != Collective::kPull;
    schedule_.collective = collective;
    schedule_.algorithm = is_ordered ? "ordered_parameter_server" : "parameter_server";
    schedule_.rank = request.rank;
    schedule_.size = request.size;
    schedule_.chunks = shares_.back().first + shares_.back().count;
    if (mine_ >= 0) held_ = shares_[static_cast<std::size_t>(mine_)];
    if (collective != Collective::kPull)
      schedule_.contributions = static_cast<int>(workers_.size());
    for (const ChunkRange& share : shares_) rounds_ = std::max(rounds_, share.count);
    request_.can_answer = request.can_answer && collective == Collective::kPushPull;
  }

  Schedule push_and_pull() {
    if (works_) schedule_.input = schedule_.output = {0, schedule_.chunks};
    for (int round = 0; round < rounds_; ++round) {
      if (works_) push(round);
      if (mine_ >= 0) serve(before(round, kServeDelay));
      if (works_) pull(before(round, kPullDelay));
    }
    return std::move(schedule_);
  }

  // Push alone: the sums stay in the servers' output.
  Schedule push_alone() {
    if (works_) schedule_.input = {0, schedule_.chunks};
    schedule_.output = held_;
    for (int round = 0; round < rounds_; ++round) {
      if (works_) push(round);
      if (!serves_in(before(round, kServeDelay))) continue;
      sum_and_update(others(), at(Place::kOutput, chunk_));
    }
    return std::move(schedule_);
  }

  Schedule pull_alone() {
    schedule_.input = held_;
    if (works_) schedule_.output = {0, schedule_.chunks};
    for (int round = 0; round < rounds_; ++round) {
      if (serves_in({round, 0})) give();
      if (works_) pull(before(round, kPullDelay));
    }
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

  // A step of the chunk that is served now.
  Step& add(StepKind kind, int from, int to) { return add(kind, stage_, chunk_, from, to); }

  // The round that is `delay` rounds before `round`.
  Round before(int round, int delay) const {
    Round earlier{round - delay, 0};
    for (; earlier.round < 0; ++earlier.stage) earlier.round += rounds_;
    return earlier;
  }

  // The chunk of a server in a round; -1: none. Chunk j of c is at (j rounds + phase) / c. The
  // phases spread smaller servers over the rounds.
  int chunk_in(int round, int server) const {
    const ChunkRange& share = shares_[static_cast<std::size_t>(server)];
    const int phase = server % rounds_;
    const int from = round * share.count - phase;
    const int j = from <= 0 ? 0 : (from + rounds_ - 1) / rounds_;
    const bool is_in = j < share.count && (j * rounds_ + phase) / share.count == round;
    return is_in ? share.first + j : -1;
  }

  // Chooses this server's chunk of a round. False if it has none.
  bool serves_in(Round round) {
    if (mine_ < 0) return false;
    chunk_ = chunk_in(round.round, mine_);
    stage_ = round.stage;
    return chunk_ >= 0;
  }

  // The other servers and their chunks in a round. Each rank starts at a different place, so that
  // workers do not all start with the same server.
  std::vector<std::pair<int, int>> chunks_of_others(int round) const {
    const auto n = static_cast<int>(shares_.size());
    const int first = mine_ >= 0 ? mine_ + 1 : request_.rank % n;
    std::vector<std::pair<int, int>> chunks;
    for (int k = 0; k < n; ++k) {
      const int server = (first + k) % n;
      const int chunk = chunk_in(round, server);
      if (server == mine_ || chunk < 0) continue;
      chunks.emplace_back(request_.servers[static_cast<std::size_t>(server)], chunk);
    }
    return chunks;
  }

  // The workers without this rank.
  std::vector<int> others() const {
    std::vector<int> ranks = workers_;
    std::erase(ranks, request_.rank);
    return ranks;
  }

  void push(int round) {
    const auto kind = request_.can_answer ? StepKind::kSendForAnswer : StepKind::kSend;
    for (const auto& [server, chunk] : chunks_of_others(round))
      add(kind, 0, chunk, kNobody, server).in = at(Place::kInput, chunk);
  }

  void pull(Round round) {
    for (const auto& [server, chunk] : chunks_of_others(round.round)) {
      Step& step = request_.can_answer
                       ? add(StepKind::kReceiveAnswer, round.stage, chunk, kNobody, server)
                       : add(StepKind::kReceive, round.stage, chunk, server, kNobody);
      step.out = at(Place::kOutput, chunk);
    }
  }

  // Sends the server's chunk to every worker, the next rank first; copies it if the server works
  // too.
  void give() {
    if (works_) {
      Step& copy = add(StepKind::kCopy, kNobody, kNobody);
      copy.in = at(Place::kInput, chunk_);
      copy.out = at(Place::kOutput, chunk_);
    }
    std::vector<int> ranks = others();
    std::rotate(ranks.begin(), std::ranges::upper_bound(ranks, request_.rank), ranks.end());
    for (const int worker : ranks)
      add(StepKind::kSend, kNobody, worker).in = at(Place::kInput, chunk_);
  }

  // Returns true if the last push was answered in the step that summed it.
  bool sum_and_update(const std::vector<int>& others, Operand sums) {
    if (others.empty()) {
      Step& copy = add(StepKind::kCopy, kNobody, kNobody);
      copy.in = at(Place::kInput, chunk_);
      copy.out = sums;
      copy.is_final = true;
    }
    const bool last_is_answered = sum(others, sums);
    if (request_.has_update) {
      Step& update = add(StepKind::kUpdate, kNobody, kNobody);
      update.in = update.out = sums;
    }
    return last_is_answered;
  }

  // Sums the pushes: in the caller's output if the server works too, else in scratch. Then replies
  // to every worker.
  void serve(Round round) {
    if (!serves_in(round)) return;
    std::vector<int> others = this->others();
    const Operand sums = works_ ? at(Place::kOutput, chunk_) : scratch();
    if (sum_and_update(others, sums)) others.pop_back();
    for (const int worker : others) {
      Step& reply = request_.can_answer ? add(StepKind::kAnswer, worker, kNobody)
                                        : add(StepKind::kSend, kNobody, worker);
      reply.in = sums;
    }
  }

  // One piece of memory for all chunks of this server: it serves one after the other.
  Operand scratch() const { return at(Place::kScratch, held_.first); }

  // Writes the complete sum to `sums`, and partial sums to scratch: input and output may be the
  // same memory, and the input is read once. Returns true if the last push was answered in the step
  // that summed it.
  bool sum(const std::vector<int>& others, Operand sums) {
    const Operand partial = scratch();
    const Operand own = at(Place::kInput, chunk_);
    const int before = pushes_before_own(others);  // a single one is combined with the own share
    const bool own_is_last = before > 1 && before == static_cast<int>(others.size());
    bool has_sum = works_ && before <= 1;
    Operand so_far = has_sum ? own : partial;
    bool is_answered = false;
    int pushes = 0;
    for (const int worker : others) {
      const bool is_last = worker == others.back() && !own_is_last;
      is_answered = is_last && has_sum && request_.can_answer && !request_.has_update;
      const auto kind = is_answered ? StepKind::kReceiveReduceAnswer
                        : has_sum   ? StepKind::kReceiveReduce
                                    : StepKind::kReceive;
      Step& step = add(kind, worker, kNobody);
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
    if (!works_ || !request_.in_rank_order) return 0;
    return static_cast<int>(
        std::ranges::count_if(others, [&](int rank) { return rank < request_.rank; }));
  }

  // Adds the own share after the partial sum: in scratch, or (`is_last`) in the complete sum.
  void add_own(bool is_last, Operand partial, Operand sums) {
    const Operand own = at(Place::kInput, chunk_);
    if (is_last) {
      Step& copy = add(StepKind::kCopy, kNobody, kNobody);
      copy.in = own;
      copy.out = sums;
    }
    Step& step = add(StepKind::kReduce, kNobody, kNobody);
    step.in = is_last ? partial : own;
    step.out = is_last ? sums : partial;
    step.is_in_last = !is_last;
    step.is_final = is_last;
  }

  ParameterServerRequest request_;
  std::vector<int> workers_;
  std::vector<ChunkRange> shares_;  // the chunks of each server
  int rounds_ = 1;                  // of a turn
  int mine_;                        // the place of this rank in shares_, or -1
  ChunkRange held_;                 // its chunks
  bool works_;                      // this rank is a worker, perhaps also a server
  int chunk_ = -1;                  // served in the round that is being written
  int stage_ = 0;                   // of its steps
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
  if (!works(request)) return 0;
  return count - served_count(request, count);
}

std::size_t parameter_server_pull_sent(const ParameterServerRequest& request, std::size_t count) {
  const std::size_t others = workers_of(request).size() - (works(request) ? 1 : 0);
  return others * served_count(request, count);
}

}  // namespace kolo::inline v0
