#include "test/collectives/algorithms/algorithm_table_proof.h"

#include <algorithm>
#include <numeric>

#include "collectives/algorithms/bidirectional_ring.h"
#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/bruck.h"
#include "collectives/algorithms/chain.h"
#include "collectives/algorithms/direct.h"
#include "collectives/algorithms/direct_reduce.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/double_tree.h"
#include "collectives/algorithms/halving_doubling.h"
#include "collectives/algorithms/hierarchical.h"
#include "collectives/algorithms/knomial_tree.h"
#include "collectives/algorithms/pairwise.h"
#include "collectives/algorithms/recursive_doubling.h"
#include "collectives/algorithms/recursive_multiplying.h"
#include "collectives/algorithms/ring.h"
#include "collectives/algorithms/scatter_allgather.h"
#include "collectives/schedule/coalesced_order.h"
#include "collectives/server_plan.h"
#include "test/collectives/algorithms/proof.h"

namespace kolo::test {
namespace {

constexpr int kRadix = 4;  // radix of the table's rows
constexpr int kLargeSizes[] = {128, 255, 256};
constexpr int kMoreCredit = 16;
constexpr int kSmallSizes = 9;  // up to this size: all awkward counts, with two segment lengths

ParameterServerRequest servers_of(const Trial& trial, int rank) {
  std::vector<int> dedicated(static_cast<std::size_t>(trial.servers));
  std::iota(dedicated.begin(), dedicated.end(), 0);
  const ServerPlan plan = trial.is_balanced
                              ? balanced_plan(dedicated, trial.size)
                              : ServerPlan{.everywhere = dedicated.empty(), .servers = dedicated};
  ParameterServerRequest request = request_of(plan, rank, trial.size);
  request.can_answer = trial.can_answer;
  request.has_update = trial.has_update;
  return request;
}

// --- formulas of one shape as another ---

template <std::size_t (*sent)(int rank, int size, std::size_t count)>
std::size_t even(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return sent(rank, trial.size, count);
}
template <std::size_t (*sent)(int rank, int size, std::size_t count, std::size_t segment)>
std::size_t by_segment(const Trial& trial, int rank, std::size_t count, std::size_t segment) {
  return sent(rank, trial.size, count, segment);
}
template <std::size_t (*sent)(int rank, int size, int root, std::size_t count)>
std::size_t rooted(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return sent(rank, trial.size, trial.root, count);
}
template <std::size_t (*sent)(int rank, int root, std::size_t count)>
std::size_t to_root(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return sent(rank, trial.root, count);
}

std::size_t knomial_broadcast(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return knomial_tree_broadcast_sent(rank, trial.size, trial.root, kRadix, count);
}
std::size_t gather_directly(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return direct_gather_sent(rank, trial.root, chunk_count(count, trial.size, rank));
}
std::size_t scatter_directly(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return direct_scatter_sent(rank, trial.root, chunk_count(count, trial.size, trial.root), count);
}
std::size_t pairwise(const Trial& trial, int, std::size_t count, std::size_t) {
  return pairwise_all_to_all_sent(count, count / static_cast<std::size_t>(trial.size));
}
std::size_t bruck(const Trial& trial, int, std::size_t count, std::size_t) {
  return bruck_all_to_all_sent(trial.size, count / static_cast<std::size_t>(trial.size));
}
std::size_t dissemination(const Trial& trial, int, std::size_t, std::size_t) {
  return static_cast<std::size_t>(dissemination_barrier_sent(trial.size));
}
std::size_t by_servers(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return parameter_server_sent(servers_of(trial, rank), count);
}
std::size_t by_push(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return parameter_server_push_sent(servers_of(trial, rank), count);
}
std::size_t by_pull(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return parameter_server_pull_sent(servers_of(trial, rank), count);
}
std::size_t message(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return rank == trial.root ? count : 0;
}

ScheduleRequest request_of(const Trial& trial, int rank) {
  return {rank, trial.size, trial.root, trial.peer, trial.can_answer, trial.hosts};
}

template <Traffic (*traffic)(const ScheduleRequest& request, std::size_t count)>
std::size_t over_hosts(const Trial& trial, int rank, std::size_t count, std::size_t) {
  return traffic(request_of(trial, rank), count).sent;
}
std::size_t barrier_over_hosts(const Trial& trial, int rank, std::size_t, std::size_t) {
  return hierarchical_barrier_traffic(request_of(trial, rank)).sent;
}

struct Row {
  Collective collective;
  std::string_view name;
  Formula sent;
};

constexpr Row kFormulas[] = {
    {Collective::kAllReduce, "ring", even<ring_all_reduce_sent>},
    {Collective::kAllReduce, "bidirectional_ring", by_segment<bidirectional_ring_all_reduce_sent>},
    {Collective::kAllReduce, "halving_doubling", even<halving_doubling_all_reduce_sent>},
    {Collective::kAllReduce, "recursive_doubling", even<recursive_doubling_all_reduce_sent>},
    {Collective::kAllReduce, "double_tree", even<double_tree_all_reduce_sent>},
    {Collective::kAllReduce, "two_shot", even<two_shot_all_reduce_sent>},
    {Collective::kAllReduce, "one_shot", even<one_shot_all_reduce_sent>},
    {Collective::kAllReduce, "recursive_multiplying", even<recursive_multiplying_all_reduce_sent>},
    {Collective::kAllReduce, "hierarchical", over_hosts<hierarchical_all_reduce_traffic>},
    {Collective::kReduceScatter, "ring", even<ring_reduce_scatter_sent>},
    {Collective::kReduceScatter, "bidirectional_ring",
     even<bidirectional_ring_reduce_scatter_sent>},
    {Collective::kReduceScatter, "recursive_halving", even<recursive_halving_reduce_scatter_sent>},
    {Collective::kReduceScatter, "direct", even<direct_reduce_scatter_sent>},
    {Collective::kReduceScatter, "hierarchical", over_hosts<hierarchical_reduce_scatter_traffic>},
    {Collective::kAllGather, "ring", even<ring_all_gather_sent>},
    {Collective::kAllGather, "bidirectional_ring", by_segment<bidirectional_ring_all_gather_sent>},
    {Collective::kAllGather, "recursive_doubling", even<recursive_doubling_all_gather_sent>},
    {Collective::kAllGather, "direct", even<direct_all_gather_sent>},
    {Collective::kAllGather, "hierarchical", over_hosts<hierarchical_all_gather_traffic>},
    {Collective::kBroadcast, "binomial_tree", rooted<binomial_tree_broadcast_sent>},
    {Collective::kBroadcast, "knomial_tree", knomial_broadcast},
    {Collective::kBroadcast, "double_tree", rooted<double_tree_broadcast_sent>},
    {Collective::kBroadcast, "scatter_allgather", rooted<scatter_allgather_broadcast_sent>},
    {Collective::kBroadcast, "chain", rooted<chain_broadcast_sent>},
    {Collective::kBroadcast, "hierarchical", over_hosts<hierarchical_broadcast_traffic>},
    {Collective::kBarrier, "dissemination", dissemination},
    {Collective::kBarrier, "hierarchical", barrier_over_hosts},
    {Collective::kPushPull, "parameter_server", by_servers},
    {Collective::kPushPull, "ordered_parameter_server", by_servers},
    {Collective::kPush, "parameter_server", by_push},
    {Collective::kPush, "ordered_parameter_server", by_push},
    {Collective::kPull, "parameter_server", by_pull},
    {Collective::kReduce, "binomial_tree", to_root<binomial_tree_reduce_sent>},
    {Collective::kReduce, "knomial_tree", to_root<knomial_tree_reduce_sent>},
    {Collective::kReduce, "double_tree", to_root<double_tree_reduce_sent>},
    {Collective::kReduce, "chain", to_root<chain_reduce_sent>},
    {Collective::kReduce, "ordered_chain", rooted<ordered_chain_reduce_sent>},
    {Collective::kReduce, "hierarchical", over_hosts<hierarchical_reduce_traffic>},
    {Collective::kGather, "binomial_tree", rooted<binomial_tree_gather_sent>},
    {Collective::kGather, "direct", gather_directly},
    {Collective::kScatter, "binomial_tree", rooted<binomial_tree_scatter_sent>},
    {Collective::kScatter, "direct", scatter_directly},
    {Collective::kAllToAll, "pairwise", pairwise},
    {Collective::kAllToAll, "direct", pairwise},
    {Collective::kAllToAll, "bruck", bruck},
    {Collective::kScan, "chain", even<chain_scan_sent>},
    {Collective::kExclusiveScan, "chain", even<chain_scan_sent>},
    {Collective::kMessage, "direct", message},
};

// --- trials ---

// Beyond 128 ranks most chunks are empty. This keeps sizes that large affordable.
void choose_counts(Collective collective, Trial& trial) {
  const auto n = static_cast<std::size_t>(trial.size);
  const bool is_small = trial.size <= kSmallSizes;
  const bool is_large = trial.size > kLargestSize;
  trial.segments = is_small ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{2};
  trial.counts = is_small ? awkward_counts(trial.size) : std::vector<std::size_t>{n - 1, 2 * n + 1};
  if (is_large) {
    trial.counts = {trial.size > 128 ? 9 : n + 2};
    trial.segments = {trial.size > 128 ? std::size_t{3} : std::size_t{40}};
  }
  if (collective == Collective::kAllToAll) {
    trial.counts = is_large ? std::vector<std::size_t>{n} : std::vector<std::size_t>{0, n, 3 * n};
  }
  if (collective == Collective::kBarrier) trial.counts = {kBarrierCount};
  trial.in_place = collective != Collective::kMessage && collective != Collective::kBarrier;
}

std::vector<Trial> trials_at(Collective collective, int size) {
  Trial trial;
  trial.size = size;
  choose_counts(collective, trial);
  std::vector<Trial> trials;
  if (collective == Collective::kMessage) {
    for (const int root : {0, size / 3, size - 1}) {
      trial.root = root;
      trial.peer = root == 0 ? size - 1 : 0;
      if (size > 1) trials.push_back(trial);
    }
  } else if (has_servers(collective)) {
    for (const int servers : {0, 1, size / 2, size - 1}) {
      trial.servers = servers;
      trial.has_update = servers % 2 == 0 && collective != Collective::kPull;
      if (servers < size) trials.push_back(trial);
    }
    trial.is_balanced = true;
    for (const int servers : {1, (size - 1) / 2}) {
      trial.servers = servers;
      trial.has_update = collective != Collective::kPull;
      // The number of chunks grows with their product.
      if (size > 3 && (servers == 1 || size <= kSmallSizes)) trials.push_back(trial);
    }
  } else if (has_root(collective)) {
    for (const int root : {0, size / 3, size - 1}) {
      trial.root = root;
      trials.push_back(trial);
    }
  } else {
    trials.push_back(trial);
  }
  return trials;
}

Schedule write(const Algorithm& algorithm, const Trial& trial, int rank) {
  PlanRequest request;
  request.ranks.rank = rank;
  request.ranks.size = trial.size;
  request.ranks.root = trial.root;
  request.ranks.peer = trial.peer;
  request.ranks.can_answer = trial.can_answer;
  request.ranks.hosts = trial.hosts;
  request.servers = servers_of(trial, rank);
  const bool is_uninvolved =
      algorithm.collective == Collective::kMessage && rank != trial.root && rank != trial.peer;
  if (!is_uninvolved) return algorithm.write(request);
  Schedule nothing;
  nothing.collective = Collective::kMessage;
  nothing.rank = rank;
  nothing.size = trial.size;
  return nothing;
}

// Whether the algorithm writes another program for channels that can answer.
bool asks(const Algorithm& algorithm, Trial trial) {
  trial.can_answer = true;
  const Schedule last = write(algorithm, trial, trial.size - 1);
  return std::any_of(last.steps.begin(), last.steps.end(), [](const Step& step) {
    return step.kind == StepKind::kSendForAnswer || step.kind == StepKind::kReceiveReduceAnswer ||
           step.kind == StepKind::kAnswer;
  });
}

// Two layouts: half of the ranks on each of two hosts, and ranks spread round-robin over three.
std::vector<std::vector<int>> hosts_of(int size) {
  std::vector<int> halves, in_turn;
  for (int rank = 0; rank < size; ++rank) {
    halves.push_back(2 * rank / size);
    in_turn.push_back(rank % 3);
  }
  return {halves, in_turn};
}

// Whether the schedule depends on the hosts of the ranks.
bool knows_hosts(const Algorithm& algorithm, const Trial& trial) {
  Trial on_one = trial;
  on_one.hosts.clear();
  const int last = trial.size - 1;
  return describe(write(algorithm, trial, last)) != describe(write(algorithm, on_one, last));
}

std::string words_of(const Trial& trial, const CheckOptions& options) {
  const int hosts =
      trial.hosts.empty() ? 1 : 1 + *std::max_element(trial.hosts.begin(), trial.hosts.end());
  return "size " + std::to_string(trial.size) + ", root " + std::to_string(trial.root) +
         ", servers " + std::to_string(trial.servers) +
         (trial.is_balanced ? " and in all workers" : "") + ", hosts " + std::to_string(hosts) +
         (trial.can_answer ? ", answering" : "") + ", count " + std::to_string(options.count) +
         " in segments of " + std::to_string(options.segment_elements) +
         (options.is_in_place ? " in place: " : ": ");
}

// Programs with at most two chunks: counts need not be awkward for the number of ranks.
void choose_whole_counts(const Algorithm& algorithm, Trial& trial) {
  const bool has_data = algorithm.collective != Collective::kBarrier;
  if (!has_data || trial.size < 3 || write(algorithm, trial, 0).chunks > 2) return;
  trial.counts = {7};
  if (trial.size <= kSmallSizes) trial.counts = {0, 1, 7};
}

}  // namespace

Formula formula_of(Collective collective, std::string_view name) {
  for (const Row& row : kFormulas) {
    if (row.collective == collective && row.name == name) return row.sent;
  }
  return nullptr;
}

std::vector<Trial> trials_of(const Algorithm& algorithm) {
  std::vector<int> sizes(static_cast<std::size_t>(kLargestSize));
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), std::begin(kLargeSizes), std::end(kLargeSizes));
  std::vector<Trial> trials;
  for (const int size : sizes) {
    for (Trial& trial : trials_at(algorithm.collective, size)) {
      choose_whole_counts(algorithm, trial);
      trials.push_back(trial);
      if (asks(algorithm, trial)) {
        trials.push_back(trial);
        trials.back().can_answer = true;
      }
      for (const std::vector<int>& hosts : hosts_of(size)) {
        trial.hosts = hosts;
        if (knows_hosts(algorithm, trial)) trials.push_back(trial);
      }
    }
  }
  return trials;
}

namespace {

// Checks one program with these options, out of place and then in place.
std::string disproof_of(const std::vector<Schedule>& program, const Trial& trial,
                        CheckOptions options, Formula sent) {
  for (int in_place = 0; in_place <= (trial.in_place ? 1 : 0); ++in_place) {
    options.is_in_place = in_place == 1;
    const CheckReport report = check(program, options);
    if (!report.is_proved()) return words_of(trial, options) + report.fault;
    for (int rank = 0; rank < trial.size; ++rank) {
      const std::size_t stated = sent(trial, rank, options.count, options.segment_elements);
      const std::size_t found = report.sent[static_cast<std::size_t>(rank)];
      if (stated == found) continue;
      return words_of(trial, options) + "rank " + std::to_string(rank) + " sends " +
             std::to_string(found) + " elements, and the formula says " + std::to_string(stated);
    }
  }
  return {};
}

std::vector<Schedule> brief_forms(const std::vector<Schedule>& program, int credit) {
  std::vector<Schedule> brief;
  for (const Schedule& schedule : program) brief.push_back(coalesced_schedule(schedule, credit));
  return brief;
}

}  // namespace

std::string disproof_of(const Algorithm& algorithm, const Trial& trial) {
  const Formula sent = formula_of(algorithm.collective, algorithm.name);
  std::vector<Schedule> program;
  for (int rank = 0; rank < trial.size; ++rank) program.push_back(write(algorithm, trial, rank));
  CheckOptions options;
  options.root = trial.root;
  options.has_update = trial.has_update;
  options.servers.resize(static_cast<std::size_t>(trial.servers));
  std::iota(options.servers.begin(), options.servers.end(), 0);
  for (const std::size_t count : trial.counts) {
    options.count = count;
    for (const std::size_t segment : trial.segments) {
      options.segment_elements = segment;
      const std::string fault = disproof_of(program, trial, options, sent);
      if (!fault.empty()) return fault;
    }
    // All data in one segment: once with a credit for many segments, once with the minimum credit.
    options.segment_elements = count + 1;
    for (const int credit : {kMoreCredit, kMinimumCredit}) {
      if (credit == kMinimumCredit && trial.size > kSmallSizes) continue;
      options.credit = credit;
      const std::string fault = disproof_of(brief_forms(program, credit), trial, options, sent);
      if (!fault.empty()) return "in brief, " + fault;
    }
    options.credit = kMinimumCredit;
  }
  return {};
}

namespace {

const char* variations_of(Collective collective) {
  if (has_root(collective)) return "3 roots";
  if (collective == Collective::kMessage) return "3 pairs of ranks";
  if (has_servers(collective))
    return "a server in every rank; 1, n / 2, n - 1 dedicated; 1, n / 2 balanced";
  return "";
}

std::string proofs_of(const Algorithm& algorithm) {
  std::size_t proofs = 0;
  bool answers = false;
  bool knows = false;
  for (const Trial& trial : trials_of(algorithm)) {
    proofs += trial.proofs();
    answers = answers || trial.can_answer;
    knows = knows || !trial.hosts.empty();
  }
  return std::string(algorithm.name) + (answers ? " (also answering)" : "") +
         (knows ? " (on 1, 2 and 3 hosts) " : " ") + std::to_string(proofs);
}

}  // namespace

std::vector<std::string> table_of_proofs() {
  std::vector<std::string> lines;
  const std::vector<Algorithm>& rows = algorithms();
  for (auto row = rows.begin(); row != rows.end();) {
    const Collective collective = row->collective;
    std::string proofs;
    for (; row != rows.end() && row->collective == collective; ++row) {
      proofs += (proofs.empty() ? "" : ", ") + proofs_of(*row);
    }
    lines.push_back("| " + std::string(to_string(collective)) + " | " + proofs + " | " +
                    variations_of(collective) + " |");
  }
  return lines;
}

}  // namespace kolo::test
