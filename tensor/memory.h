#pragma once

// Allocation of large blocks, for arenas and pools.

#include <cstddef>
#include <memory>

namespace kolo::tensor {

// Allocates `bytes` zeroed bytes, aligned to at least 64. Uses huge pages if available, because a
// pass over tens of megabytes otherwise spends its time on page-table walks. Throws std::bad_alloc.
std::shared_ptr<std::byte> allocate_block(std::size_t bytes);

}  // namespace kolo::tensor
