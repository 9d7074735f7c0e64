// Buffers of equal length that are used again. A new buffer of some MB costs a page fault per page,
// more than its transfer in shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace kolo::inline v0::key_server {

// For one thread.
class BufferPool {
 public:
  explicit BufferPool(std::size_t elements) : elements_(elements) {}

  // The buffer is free again when all copies of the pointer are gone. Its content is undefined.
  std::shared_ptr<float[]> take() {
    const auto spare =
        std::ranges::find_if(all_, [](const auto& one) { return one.use_count() == 1; });
    if (spare != all_.end()) return *spare;
    all_.push_back(std::make_shared_for_overwrite<float[]>(elements_));
    return all_.back();
  }

 private:
  std::size_t elements_;
  std::vector<std::shared_ptr<float[]>> all_;
};

}  // namespace kolo::inline v0::key_server
