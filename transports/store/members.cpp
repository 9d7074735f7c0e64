#include "transports/store/members.h"

#include <fmt/format.h>
#include <algorithm>

namespace kolo::inline v0 {

namespace {

constexpr std::string_view kWayOut =
    "a program that a rank starts inherits RANK: unset it there; another job needs another "
    "MASTER_PORT, or another store in KOLO_STORE";

std::string taken_twice(const Membership& other, std::string_view holder) {
  return fmt::format(
      "rank {} is taken twice, by {} and by {}: give each process its own RANK, and each job its "
      "own store",
      other.rank, holder, other.who);
}

}  // namespace

Members::Answer Members::judge(const Membership& wanted) const {
  const auto found = rolls_.find(wanted.communicator);
  if (wanted.communicator.empty() || found == rolls_.end()) return {};
  const Roll& roll = found->second;
  const auto is_of_process = [&](const auto& each) { return each.second.who == wanted.who; };
  if (roll.has_met() && std::ranges::any_of(roll.holders, is_of_process)) return {};
  const auto holder = roll.holders.find(wanted.rank);
  const bool is_held = holder != roll.holders.end() && holder->second.who != wanted.who;
  if (!roll.has_met()) {
    if (!is_held) return {};
    return {Verdict::kTakenTwice, taken_twice(wanted, holder->second.who)};
  }
  if (is_held) {
    return {
        Verdict::kRefused,
        fmt::format("rank {} ({}) is refused: all {} ranks of this job have met, and its rank "
                    "{} is {}: {}",
                    wanted.rank, wanted.who, roll.size, wanted.rank, holder->second.who, kWayOut)};
  }
  if (wanted.size == roll.size) return {};  // the next job at this store
  return {Verdict::kRefused,
          fmt::format("rank {} of {} ({}) is refused: this store serves a job of {} ranks, all of "
                      "which have met: {}",
                      wanted.rank, wanted.size, wanted.who, roll.size, kWayOut)};
}

void Members::join(const Membership& member) {
  Roll& roll = rolls_[member.communicator];
  if (roll.size == 0) roll.size = member.size;
  if (member.size == roll.size) roll.come.insert(member.rank);
  Holder& holder = roll.holders[member.rank];
  ++holder.joins;
  holder.who = member.who;
}

void Members::leave(std::string_view communicator, int rank) {
  const auto found = rolls_.find(communicator);
  if (found == rolls_.end()) return;
  const auto holder = found->second.holders.find(rank);
  if (holder == found->second.holders.end() || --holder->second.joins > 0) return;
  found->second.holders.erase(holder);
  if (found->second.holders.empty()) rolls_.erase(found);
}

bool Members::have_met() const {
  return std::ranges::any_of(rolls_, [](const auto& each) { return each.second.has_met(); });
}

// Ranks that are there come first: a communicator without any would be forgotten.
std::vector<Members::Event> Members::history() const {
  std::vector<Event> events;
  for (const auto& [communicator, roll] : rolls_) {
    for (const auto& [rank, holder] : roll.holders) {
      const int size = roll.come.count(rank) > 0 ? roll.size : 0;
      for (int i = 0; i < holder.joins; ++i)
        events.push_back({true, {rank, communicator, size, holder.who}});
    }
    for (const int rank : roll.come) {
      if (roll.holders.count(rank) > 0) continue;
      events.push_back({true, {rank, communicator, roll.size, "?"}});
      events.push_back({false, {rank, communicator, roll.size, "?"}});
    }
  }
  return events;
}

void Members::visit(const std::function<void(int rank, const std::string& who)>& visit) const {
  for (const auto& [communicator, roll] : rolls_) {
    for (const auto& [rank, holder] : roll.holders) visit(rank, holder.who);
  }
}

}  // namespace kolo::inline v0
