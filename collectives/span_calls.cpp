#include "collectives/span_calls.h"

#include <fmt/format.h>
#include <stdexcept>

#include "collectives/schedule.h"

namespace kolo::span_calls {

void check_chunk(std::string_view call, std::size_t given, std::size_t all, int size, int rank) {
  const std::size_t wanted = chunk_count(all, size, rank);
  if (given == wanted) return;
  throw std::invalid_argument(
      fmt::format("{}: the chunk of rank {} of {} has {} of {} elements, and the span of it has {}",
                  call, rank, size, wanted, all, given));
}

void check_same_length(std::string_view call, std::size_t in, std::size_t out) {
  if (in == out) return;
  throw std::invalid_argument(
      fmt::format("{}: what is given has {} elements, and the span for what is got {}; they are as "
                  "many",
                  call, in, out));
}

}  // namespace kolo::span_calls
