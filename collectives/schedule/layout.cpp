#include "collectives/schedule/layout.h"

namespace kolo::inline v0 {

void Layout::split(std::size_t count, int chunks, int spans) {
  begins_.resize(static_cast<std::size_t>(chunks) + 1);
  const int parts = chunks / spans;
  for (int chunk = 0; chunk <= chunks; ++chunk) {
    const auto span = static_cast<std::size_t>(chunk / parts);
    begins_[static_cast<std::size_t>(chunk)] =
        span * count + chunk_begin(count, parts, chunk % parts);
  }
}

void Layout::assign(std::span<const std::size_t> lengths) {
  begins_.resize(lengths.size() + 1);
  begins_[0] = 0;
  for (std::size_t chunk = 0; chunk < lengths.size(); ++chunk) {
    begins_[chunk + 1] = begins_[chunk] + lengths[chunk];
  }
}

}  // namespace kolo::inline v0
