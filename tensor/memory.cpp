#include "tensor/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace kolo::tensor {

std::shared_ptr<std::byte> allocate_block(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t unit = bytes >= kHugePage ? kHugePage : std::size_t{4096};
  // One unit more than needed, so that the block can begin on a unit boundary.
  const std::size_t mapped = (bytes / unit + 2) * unit;
  void* const base =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  if (unit == kHugePage) madvise(base, mapped, MADV_HUGEPAGE);  // a hint; failure costs only speed
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::size_t skip = (unit - address % unit) % unit;
  return {static_cast<std::byte*>(base) + skip,
          [base, mapped](std::byte*) { munmap(base, mapped); }};
}

}  // namespace kolo::tensor
