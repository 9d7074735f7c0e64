// Detects ranks that make different groups, or call a collective where others make a group.
#include "collectives/engine/group_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <sstream>

#include "collectives/engine/engine.h"
#include "collectives/engine/wait_graph.h"

namespace kolo::inline v0 {
namespace {

// "ranks 0, 1, 2", or the first ones and the number of all.
std::string name_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kNamed = 16;
  const std::span<const int> named(ranks.data(), std::min(ranks.size(), kNamed));
  const std::string list = fmt::format("ranks {}", fmt::join(named, ", "));
  return ranks.size() <= kNamed ? list : fmt::format("{}, ... ({} ranks)", list, ranks.size());
}

// Numbers of operations wrap, after days of small ones.
bool is_before(std::uint32_t one, std::uint32_t other) {
  return static_cast<std::int32_t>(one - other) < 0;
}

bool has_rank(const GroupCall& call, int rank) {
  return std::ranges::find(call.ranks, rank) != call.ranks.end();
}

// A rank that makes a group. It waits until all members of the group have joined, in the store.
struct Maker {
  int rank = 0;
  GroupCall call;
  std::size_t waiting = 0;  // index of a maker that waits for this one
};

// True if the member at `place` of the group has joined it.
bool has_come(Store& store, const GroupCall& call, std::size_t place) {
  return store.add(use_key(call.name, place), 0) >= call.use;
}

// The chain of makers from the first to the one at `last`. Each waits for the next.
std::vector<Maker> chain_to(const std::vector<Maker>& found, std::size_t last) {
  std::vector<Maker> chain;
  for (; last > 0; last = found[last].waiting) chain.push_back(found[last]);
  chain.push_back(found.front());
  std::ranges::reverse(chain);
  return chain;
}

// Finds the shortest cycle of ranks that wait for each other, because each makes a different group.
// The result begins with `rank`, which makes the group `mine`. Each rank waits for the next one,
// and the last one for `rank`. Empty: there is no cycle.
//
// A breadth-first search from `rank`; its edges lead from a rank to those that it waits for.
std::vector<Maker> find_cycle(Store& store, int rank, const GroupCall& mine, Deadline until) {
  std::vector<Maker> found = {{rank, mine}};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Maker maker = found[i];
    // A member that makes a group has published it, and waits until that group is complete. If it
    // makes another group than this maker and has not joined this one, this maker waits for it.
    std::vector<std::shared_ptr<const Store::Answer>> groups;
    for (const int peer : maker.call.ranks) groups.push_back(store.ask(group_key(peer)));
    if (!wait_for_answers(store, groups, until)) return {};
    for (std::size_t place = 0; place < groups.size(); ++place) {
      const int peer = maker.call.ranks[place];
      const bool is_known = std::ranges::find(found, peer, &Maker::rank) != found.end();
      const auto theirs = group_call_from(groups[place]->value.value_or(""));
      const bool waits = theirs && theirs->name != maker.call.name;
      if (peer == rank ? i == 0 : is_known || !waits) continue;
      if (has_come(store, maker.call, place)) continue;
      if (peer == rank) return chain_to(found, i);
      found.push_back({peer, *theirs, i});
    }
  }
  return {};
}

Error different_groups(const std::vector<Maker>& cycle) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), kNamed); ++i) {
    text += fmt::format("rank {} makes a group of {} and waits for rank {}; ", cycle[i].rank,
                        name_ranks(cycle[i].call.ranks), cycle[(i + 1) % cycle.size()].rank);
  }
  if (cycle.size() > kNamed) text += fmt::format("... ({} ranks); ", cycle.size());
  return {ErrorCode::kMismatch, cycle[1].rank,
          text +
              "every member must list the same ranks in the same order, and all ranks must make "
              "their groups in the same order"};
}

Error group_beside_collective(int group_rank, const GroupCall& group, int rank,
                              const CallHeader& header, int peer) {
  return {ErrorCode::kMismatch, peer,
          fmt::format("rank {} makes a group of {}, but rank {} called {} instead; every rank must "
                      "make groups and issue operations in the same order (split() begins with an "
                      "all_gather)",
                      group_rank, name_ranks(group.ranks), rank, describe(header))};
}

// The collective in which a peer waits, from what it has `said` in the store. Empty: it waits in
// none, or in one that was issued before number `next`.
std::optional<CallHeader> late_call(std::string_view said, std::uint32_t next) {
  CallHeader header;
  if (said.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, said.data(), sizeof(header));
  if (header.magic != CallHeader().magic || is_before(header.sequence, next)) return std::nullopt;
  return header;
}

}  // namespace

std::string group_key(int rank) { return fmt::format("group/{}", rank); }

std::string use_key(const std::string& name, std::size_t place) {
  return fmt::format("{}/uses/{}", name, place);
}

std::string to_text(const GroupCall& call) {
  return fmt::format("{} {} {} {}\n{}", call.use, call.sequence, call.ranks.size(),
                     fmt::join(call.ranks, " "), call.name);
}

std::optional<GroupCall> group_call_from(std::string_view text) {
  const auto line = text.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  std::istringstream words{std::string(text.substr(0, line))};
  words.exceptions(std::ios::badbit);  // throws if memory runs out; that is not the end of the text
  GroupCall call;
  std::size_t ranks = 0;
  if (!(words >> call.use >> call.sequence >> ranks)) return std::nullopt;
  for (int rank = 0; words >> rank;) call.ranks.push_back(rank);
  if (call.ranks.size() != ranks) return std::nullopt;
  call.name = text.substr(line + 1);
  return call;
}

std::vector<int> Engine::job_ranks(std::span<const int> ranks) const {
  std::vector<int> result;
  for (const int rank : ranks) result.push_back(job_rank(rank));
  return result;
}

// On the new group's engine: runs `meet`, which waits in the store for the members. After a while
// without all of them, the parent compares what they do.
void Engine::meet_members(GroupOrigin& origin, Deadline deadline,
                          const std::function<void(Deadline)>& meet) {
  const Deadline soon = Clock::now() + kPublishWaitsAfter;
  if (soon >= deadline) return meet(deadline);
  try {
    return meet(soon);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadline) throw;
  }
  Engine& parent = origin.parent;
  parent.compare_group(origin.call);
  meet(deadline);
  parent.store_->note(group_key(parent.rank_), "");
}

void Engine::begin_group(GroupCall& mine) {
  const std::lock_guard lock(mutex_);
  mine.sequence = sequence_;
  std::int64_t& uses = group_uses_[mine.name];
  uses = std::max(uses, mine.use);
}

// A peer that comes later reads what this rank has published, so each compares only once.
void Engine::compare_group(const GroupCall& mine) {
  store_->note(group_key(rank_), to_text(mine));
  const Deadline until = wait_graph_deadline(*store_);
  const std::vector<Maker> cycle = find_cycle(*store_, rank_, mine, until);
  if (!cycle.empty()) throw settle(different_groups(cycle));
  std::vector<std::shared_ptr<const Store::Answer>> calls, waits;
  for (const int peer : mine.ranks) {
    calls.push_back(store_->ask(fmt::format("call/{}", peer)));
    waits.push_back(ask_for_wait_edges(*store_, peer));
  }
  for (const auto& answers : {calls, waits}) {
    if (!wait_for_answers(*store_, answers, until)) return;
  }
  for (std::size_t i = 0; i < mine.ranks.size(); ++i) {
    const int peer = mine.ranks[i];
    if (peer == rank_ || has_come(*store_, mine, i)) continue;
    if (waits[i]->value.value_or("").empty()) continue;
    if (const auto header = late_call(calls[i]->value.value_or(""), mine.sequence))
      throw settle(group_beside_collective(rank_, mine, peer, *header, peer));
  }
}

// True if this rank has made that group, or makes it now in another thread.
bool Engine::has_made(const GroupCall& call) {
  const std::lock_guard lock(mutex_);
  const auto made = group_uses_.find(call.name);
  return made != group_uses_.end() && made->second >= call.use;
}

// In the collective `mine`: compares it with the group that `peer` makes.
void Engine::compare_with_group(const CallHeader& mine, int peer, std::string_view said) {
  const auto group = group_call_from(said);
  if (!group || !has_rank(*group, rank_) || is_before(mine.sequence, group->sequence)) return;
  if (has_made(*group)) return;
  throw group_beside_collective(peer, *group, rank_, mine, peer);
}

}  // namespace kolo::inline v0
