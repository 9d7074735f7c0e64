// How long every chunk of an operation is, and where it begins.
//
// Most operations split a count into equal chunks; those whose shares differ say how long each is.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/schedule.h"

namespace kolo {

class Layout {
 public:
  // `count` elements in `chunks` / `spans` chunks (chunk_begin), and that `spans` times in a row.
  void split(std::size_t count, int chunks, int spans);
  // As many chunks as there are lengths, in elements.
  void assign(std::span<const std::size_t> lengths);

  int chunks() const { return static_cast<int>(begins_.size()) - 1; }
  // Elements before the chunk; of chunks(): all.
  std::size_t begin(int chunk) const { return begins_[static_cast<std::size_t>(chunk)]; }
  std::size_t length(int chunk) const { return begin(chunk + 1) - begin(chunk); }
  // Elements of some chunks in a row.
  std::size_t length(ChunkRange range) const {
    return begin(range.first + range.count) - begin(range.first);
  }

 private:
  std::vector<std::size_t> begins_{0};
};

}  // namespace kolo
