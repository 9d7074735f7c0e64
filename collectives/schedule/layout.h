// Layout: position and length of every chunk of an operation.
//
// Most operations split a count into equal chunks. Operations with uneven shares pass all lengths.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

class Layout {
 public:
  // `count` elements in `chunks` / `spans` chunks (chunk_begin), repeated `spans` times.
  void split(std::size_t count, int chunks, int spans);
  // One chunk per length, in elements.
  void assign(std::span<const std::size_t> lengths);

  int chunks() const { return static_cast<int>(begins_.size()) - 1; }
  // Elements before `chunk`; for chunks(): all elements.
  std::size_t begin(int chunk) const { return begins_[static_cast<std::size_t>(chunk)]; }
  std::size_t length(int chunk) const { return begin(chunk + 1) - begin(chunk); }
  // Elements of consecutive chunks.
  std::size_t length(ChunkRange range) const {
    return begin(range.first + range.count) - begin(range.first);
  }

 private:
  std::vector<std::size_t> begins_{0};
};

}  // namespace kolo::inline v0
