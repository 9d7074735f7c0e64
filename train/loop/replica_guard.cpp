#include "train/loop/replica_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "train/loop/gather.h"
#include "train/loop/hash.h"

namespace kolo::train {
namespace {

std::int64_t as_signed(std::uint64_t hash) { return std::bit_cast<std::int64_t>(hash); }
std::uint64_t as_unsigned(std::int64_t hash) { return std::bit_cast<std::uint64_t>(hash); }

// "ranks 0, 2 have 0123456789abcdef; rank 1 has ...".
std::string parties(std::span<const std::int64_t> hashes) {
  std::vector<std::int64_t> order;
  std::map<std::int64_t, std::vector<std::size_t>> ranks_of;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    if (!ranks_of.contains(hashes[rank])) order.push_back(hashes[rank]);
    ranks_of[hashes[rank]].push_back(rank);
  }
  std::string text;
  for (const std::int64_t hash : order) {
    const std::vector<std::size_t>& ranks = ranks_of[hash];
    text += fmt::format("{}rank{} {} {} {}", text.empty() ? "" : "; ", ranks.size() > 1 ? "s" : "",
                        fmt::join(ranks, ", "), ranks.size() > 1 ? "have" : "has",
                        hex(as_unsigned(hash)));
  }
  return text;
}

}  // namespace

ReplicaGuard::ReplicaGuard(Communicator& communicator, const tensor::Parameters& parameters,
                           int workers)
    : communicator_(communicator), parameters_(parameters), workers_(workers) {}

std::uint64_t ReplicaGuard::check(std::int64_t iterations) {
  const bool is_worker = communicator_.rank() < workers_;
  const std::int64_t mine = is_worker ? as_signed(hash_of(parameters_.values())) : 0;
  std::vector<std::int64_t> hashes = gather(communicator_, mine);
  hashes.resize(static_cast<std::size_t>(workers_));
  if (std::any_of(hashes.begin(), hashes.end(), [&](auto hash) { return hash != hashes[0]; })) {
    report(iterations, hashes);
  }
  if (workers_ > 1) ++checks_;  // else there was nothing to compare
  return as_unsigned(hashes[0]);
}

void ReplicaGuard::report(std::int64_t iterations, std::span<const std::int64_t> hashes) {
  const bool is_worker = communicator_.rank() < workers_;
  std::vector<std::int64_t> mine;
  for (const tensor::Parameter& parameter : parameters_.list()) {
    const auto values =
        parameters_.values().subspan(static_cast<std::size_t>(parameter.range.begin),
                                     static_cast<std::size_t>(parameter.range.count));
    mine.push_back(is_worker ? as_signed(hash_of(values)) : 0);
  }
  auto table = gather_rows(communicator_, mine);
  table.resize(static_cast<std::size_t>(workers_));
  std::string where = "no parameter, only the gaps between them";
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto differs = [&](const auto& row) { return row[i] != table[0][i]; };
    if (std::any_of(table.begin(), table.end(), differs)) {
      where = parameters_.list()[i].name;
      break;
    }
  }
  throw ReplicaError(fmt::format(
      "the replicas are no longer equal after iteration {}: {} (hash of all parameters). The first "
      "parameter that differs is {}. Results from here on would be wrong, so training stops; run "
      "with --hash-every 1 to find the iteration",
      iterations, parties(hashes), where));
}

}  // namespace kolo::train
