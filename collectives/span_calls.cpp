#include "collectives/span_calls.h"

#include <fmt/format.h>
#include <numeric>
#include <stdexcept>

#include "collectives/schedule.h"

namespace kolo::span_calls {
namespace {

[[noreturn]] void reject(const Caller& who, const std::string& what) {
  throw std::invalid_argument(
      fmt::format("{}: rank {} of {}: {}", who.call, who.rank, who.size, what));
}

}  // namespace

void check_chunk(const Caller& who, std::size_t given, std::size_t all) {
  const std::size_t wanted = chunk_count(all, who.size, who.rank);
  if (given == wanted) return;
  reject(who, fmt::format("its chunk of {} elements has {}, but its span has {}: pass a span of "
                          "chunk_count({}, {}, {}), or use {}_v, which takes chunks of any length",
                          all, wanted, given, all, who.size, who.rank, who.call));
}

void check_same_length(const Caller& who, std::size_t in, std::size_t out) {
  if (in == out) return;
  reject(who,
         fmt::format("the input span has {} elements, but the output span has {}: "
                     "pass spans of equal length, or use {}_v, which takes shares of any length",
                     in, out, who.call));
}

void check_sum(const Caller& who, std::string_view name, Counts counts, std::size_t given) {
  if (counts.size() != static_cast<std::size_t>(who.size)) {
    reject(who, fmt::format("'{}' has {} entries: pass one for each rank", name, counts.size()));
  }
  const std::size_t wanted = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  if (given == wanted) return;
  reject(who,
         fmt::format("the sum of '{}' is {} elements, but the span for all ranks has {}: pass a "
                     "span of that length",
                     name, wanted, given));
}

void check_own(const Caller& who, Counts counts, std::size_t given) {
  const std::size_t wanted = counts[static_cast<std::size_t>(who.rank)];
  if (given == wanted) return;
  reject(who, fmt::format("its entry in 'counts' is {} elements, but the span of its share has {}: "
                          "pass a span of that length",
                          wanted, given));
}

std::vector<std::size_t> equal_shares(std::size_t all, int size) {
  std::vector<std::size_t> shares(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    shares[static_cast<std::size_t>(rank)] = chunk_count(all, size, rank);
  }
  return shares;
}

}  // namespace kolo::span_calls
