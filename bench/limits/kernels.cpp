#include "bench/limits/kernels.h"

namespace kolo::bench {
namespace {

// The same loops for three instruction sets; the compiler vectorizes them.
[[gnu::always_inline]] inline void scale_loop(float* x, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

[[gnu::always_inline]] inline void add_loop(float* __restrict own, float* __restrict slot,
                                            std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = own[i] + slot[i];
    own[i] = sum;
    slot[i] = sum;
  }
}

[[gnu::always_inline]] inline void add_to_loop(float* __restrict own, const float* __restrict other,
                                               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) own[i] += other[i];
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void scale_avx512(float* x, std::size_t count, float factor) {
  scale_loop(x, count, factor);
}
[[gnu::target("avx2")]] void scale_avx2(float* x, std::size_t count, float factor) {
  scale_loop(x, count, factor);
}
[[gnu::target("avx512f")]] void add_avx512(float* own, float* slot, std::size_t count) {
  add_loop(own, slot, count);
}
[[gnu::target("avx2")]] void add_avx2(float* own, float* slot, std::size_t count) {
  add_loop(own, slot, count);
}
[[gnu::target("avx512f")]] void add_to_avx512(float* own, const float* other, std::size_t count) {
  add_to_loop(own, other, count);
}
[[gnu::target("avx2")]] void add_to_avx2(float* own, const float* other, std::size_t count) {
  add_to_loop(own, other, count);
}

bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
#endif

}  // namespace

void scale_in_place(float* x, std::size_t count, float factor) {
#if defined(__x86_64__)
  if (has_avx512()) return scale_avx512(x, count, factor);
  if (has_avx2()) return scale_avx2(x, count, factor);
#endif
  scale_loop(x, count, factor);
}

void add_to_both(float* own, float* slot, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx512()) return add_avx512(own, slot, count);
  if (has_avx2()) return add_avx2(own, slot, count);
#endif
  add_loop(own, slot, count);
}

void add_to(float* own, const float* other, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx512()) return add_to_avx512(own, other, count);
  if (has_avx2()) return add_to_avx2(own, other, count);
#endif
  add_to_loop(own, other, count);
}

}  // namespace kolo::bench
