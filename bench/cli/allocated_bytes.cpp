#include "bench/cli/allocated_bytes.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "bench/measure/out_of_memory.h"

namespace kolo::bench {
namespace {

std::atomic<std::size_t> held{0};

// The length is stored before the returned memory, in a header as long as the alignment.
constexpr std::size_t kLeastAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

[[noreturn]] void refuse(std::size_t bytes) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "there is no memory for %zu bytes (see ulimit -v)",
                bytes);
  throw OutOfMemory(text.data());
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = (bytes + 2 * alignment - 1) / alignment * alignment;
  auto* memory = whole < bytes ? nullptr : static_cast<char*>(std::aligned_alloc(alignment, whole));
  if (memory == nullptr) refuse(bytes);
  memory += alignment;
  std::memcpy(memory - sizeof(bytes), &bytes, sizeof(bytes));
  held.fetch_add(bytes, std::memory_order_relaxed);
  return memory;
}

void release(void* memory, std::size_t alignment) noexcept {
  if (memory == nullptr) return;
  std::size_t bytes = 0;
  std::memcpy(&bytes, static_cast<char*>(memory) - sizeof(bytes), sizeof(bytes));
  held.fetch_sub(bytes, std::memory_order_relaxed);
  std::free(static_cast<char*>(memory) - alignment);
}

}  // namespace

std::size_t allocated_bytes() { return held.load(std::memory_order_relaxed); }

}  // namespace kolo::bench

// All forms are replaced. A sanitizer's runtime would supply a missing form, and memory from one
// implementation cannot be released by the other.
using kolo::bench::kLeastAlignment;
using Alignment = std::align_val_t;

namespace {

void* allocate(std::size_t bytes, Alignment alignment) {
  return kolo::bench::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* allocate_or_null(std::size_t bytes, Alignment alignment) noexcept {
  try {
    return allocate(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void release(void* memory, Alignment alignment) noexcept {
  kolo::bench::release(memory, static_cast<std::size_t>(alignment));
}

constexpr Alignment kLeast{kLeastAlignment};

}  // namespace

void* operator new(std::size_t n) { return allocate(n, kLeast); }
void* operator new[](std::size_t n) { return allocate(n, kLeast); }
void* operator new(std::size_t n, Alignment a) { return allocate(n, a); }
void* operator new[](std::size_t n, Alignment a) { return allocate(n, a); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, kLeast);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, kLeast);
}
void* operator new(std::size_t n, Alignment a, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, a);
}
void* operator new[](std::size_t n, Alignment a, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, a);
}

void operator delete(void* memory) noexcept { release(memory, kLeast); }
void operator delete[](void* memory) noexcept { release(memory, kLeast); }
void operator delete(void* memory, std::size_t) noexcept { release(memory, kLeast); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory, kLeast); }
void operator delete(void* memory, Alignment a) noexcept { release(memory, a); }
void operator delete[](void* memory, Alignment a) noexcept { release(memory, a); }
void operator delete(void* memory, std::size_t, Alignment a) noexcept { release(memory, a); }
void operator delete[](void* memory, std::size_t, Alignment a) noexcept { release(memory, a); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory, kLeast); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory, kLeast); }
void operator delete(void* memory, Alignment a, const std::nothrow_t&) noexcept {
  release(memory, a);
}
void operator delete[](void* memory, Alignment a, const std::nothrow_t&) noexcept {
  release(memory, a);
}
