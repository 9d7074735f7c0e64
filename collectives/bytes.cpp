#include "collectives/bytes.h"

#include <cstdint>
#include <numeric>

namespace kolo::inline v0 {
namespace {

std::vector<Bytes> cut(const Bytes& all, const std::vector<std::size_t>& lengths) {
  std::vector<Bytes> parts;
  auto begin = all.begin();
  for (const std::size_t length : lengths) {
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    parts.emplace_back(begin, end);
    begin = end;
  }
  return parts;
}

std::size_t sum(const std::vector<std::size_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
}

}  // namespace

std::vector<Bytes> all_gather_bytes(Communicator& communicator, std::span<const std::byte> mine) {
  const std::uint64_t length = mine.size();
  std::vector<std::size_t> lengths(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::span(&length, 1), lengths);
  Bytes all(sum(lengths));
  communicator.all_gather_v(mine, all, lengths);
  return cut(all, lengths);
}

std::vector<Bytes> gather_bytes(Communicator& communicator, std::span<const std::byte> mine,
                                int root) {
  const std::uint64_t length = mine.size();
  std::vector<std::size_t> lengths(static_cast<std::size_t>(communicator.size()));
  communicator.gather(std::span(&length, 1), lengths, root);
  if (communicator.rank() != root) lengths.clear();
  Bytes all(sum(lengths));
  communicator.gather_v(mine, all, lengths, root);
  return cut(all, lengths);
}

Bytes broadcast_bytes(Communicator& communicator, std::span<const std::byte> data, int root) {
  std::uint64_t length = data.size();
  communicator.broadcast(std::span(&length, 1), root);
  Bytes bytes(length);
  if (communicator.rank() == root) bytes.assign(data.begin(), data.end());
  communicator.broadcast(bytes, root);
  return bytes;
}

}  // namespace kolo::inline v0
