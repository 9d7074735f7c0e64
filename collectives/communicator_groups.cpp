// Communicator::subset, duplicate and split: communicators of some ranks of another one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <stdexcept>

#include "collectives/engine/communicator_state.h"

namespace kolo::inline v0 {
namespace {

// A short name, the same on all members: it is a prefix of keys in the store.
std::string name_of_group(std::span<const int> ranks) {
  const std::vector<std::size_t> numbers(ranks.begin(), ranks.end());
  return fmt::format("group of {} ranks {:04x} from {}", ranks.size(), hash(numbers),
                     ranks.front());
}

void require_group(std::span<const int> ranks, int rank, int size) {
  const std::set<int> distinct(ranks.begin(), ranks.end());
  const std::string list = fmt::format("{}", fmt::join(ranks, ", "));
  if (ranks.empty()) {
    throw std::invalid_argument(fmt::format(
        "subset: rank {} passed an empty list: list all ranks of the group, with its own", rank));
  }
  if (distinct.size() != ranks.size()) {
    throw std::invalid_argument(fmt::format("subset: a rank is named twice: {}", list));
  }
  if (distinct.count(rank) == 0) {
    throw std::invalid_argument(
        fmt::format("subset: rank {} is not in its own list of ranks: {}", rank, list));
  }
  if (*distinct.begin() < 0 || *distinct.rbegin() >= size) {
    throw std::invalid_argument(
        fmt::format("subset: ranks must lie in 0 to {}: {}", size - 1, list));
  }
}

}  // namespace

Communicator Communicator::subset(std::span<const int> ranks) {
  require_group(ranks, rank(), size());
  const std::shared_ptr<State> parent = held();  // a callback may destroy this
  parent->require_alive();
  CommunicatorOptions options = parent->options();
  options.name = name_of_group(ranks);
  options.device = parent->device();
  const auto place = std::ranges::find(ranks, parent->rank()) - ranks.begin();
  return Communicator(std::make_shared<State>(static_cast<int>(place), *parent, options,
                                              std::vector<int>(ranks.begin(), ranks.end())));
}

Communicator Communicator::duplicate() {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  return subset(all);
}

std::optional<Communicator> Communicator::split(int color, int key) {
  const std::array<std::int32_t, 2> mine{color, key};
  std::vector<std::int32_t> all(2 *
                                static_cast<std::size_t>(size()));  // color and key of each rank
  all_gather(mine, all);
  const auto color_of = [&](int rank) { return all[2 * static_cast<std::size_t>(rank)]; };
  const auto key_of = [&](int rank) { return all[2 * static_cast<std::size_t>(rank) + 1]; };
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (color_of(rank) == color) ranks.push_back(rank);
  }
  if (color < 0) return std::nullopt;
  std::ranges::stable_sort(ranks, {}, key_of);
  return subset(ranks);
}

}  // namespace kolo::inline v0
