#include "train/loop/gather.h"

#include <algorithm>

namespace kolo::train {
namespace {

template <typename T>
std::vector<std::vector<T>> gather_table(Communicator& communicator, std::span<const T> mine) {
  const std::size_t length = mine.size();
  const auto size = static_cast<std::size_t>(communicator.size());
  std::vector<T> slots(size * length, T{});
  std::copy(mine.begin(), mine.end(),
            slots.begin() + static_cast<std::ptrdiff_t>(
                                static_cast<std::size_t>(communicator.rank()) * length));
  communicator.all_reduce(std::span<T>(slots));
  std::vector<std::vector<T>> rows(size);
  for (std::size_t r = 0; r < size; ++r) {
    const auto begin = slots.begin() + static_cast<std::ptrdiff_t>(r * length);
    rows[r].assign(begin, begin + static_cast<std::ptrdiff_t>(length));
  }
  return rows;
}

}  // namespace

std::vector<std::int64_t> gather(Communicator& communicator, std::int64_t mine) {
  std::vector<std::int64_t> result;
  for (const auto& row : gather_table<std::int64_t>(communicator, {&mine, 1})) {
    result.push_back(row[0]);
  }
  return result;
}

std::vector<std::vector<double>> gather_rows(Communicator& communicator,
                                             std::span<const double> mine) {
  return gather_table(communicator, mine);
}

std::vector<std::vector<std::int64_t>> gather_rows(Communicator& communicator,
                                                   std::span<const std::int64_t> mine) {
  return gather_table(communicator, mine);
}

}  // namespace kolo::train
