#pragma once

// Large blocks from the system, for arenas and pools.

#include <cstddef>
#include <memory>

namespace kolo::tensor {

/// `bytes` zeroed bytes, aligned to 64 at least; on huge pages where the system has them, because a
/// pass over tens of megabytes otherwise spends its time on page-table walks. Throws
/// std::bad_alloc.
std::shared_ptr<std::byte> allocate_block(std::size_t bytes);

}  // namespace kolo::tensor
