#pragma once

// Parallel loops on the threads of oneDNN's OpenMP runtime.
//
// oneDNN as packaged by the distributions uses GNU OpenMP, whose threads spin for a while after
// each piece of work. Threads of our own would compete with them for the cores, so we use the same
// ones. We call libgomp's entry point directly, because a compiler's own OpenMP (clang's) may load
// a second runtime.

#include <cstdint>

extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
void omp_set_num_threads(int threads);
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void* address);
void __tsan_release(void* address);
#endif
}

namespace kolo::tensor::onednn {

// The thread sanitizer does not see libgomp's synchronization. These functions declare the
// happens-before edges that libgomp guarantees.
inline void order_after([[maybe_unused]] void* job) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(job);
#endif
}
inline void order_before([[maybe_unused]] void* job) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(job);
#endif
}

// First index of part `part`, if `count` items are split into `parts` parts; for `parts`: the end.
inline std::int64_t part_begin(std::int64_t count, int part, int parts) {
  return count * part / parts;
}

// Calls work(part) for each part in [0, parts), each on its own thread. Returns when all are done.
// `work` must not throw.
template <typename Work>
void parallel(int parts, const Work& work) {
  if (parts == 1) {
    work(0);
    return;
  }
  struct Job {
    const Work* work;
    int parts;
  } job{&work, parts};
  const auto body = [](void* data) {
    order_after(data);
    const Job& mine = *static_cast<Job*>(data);
    // The runtime may provide fewer threads than requested.
    const int threads = omp_get_num_threads();
    for (int part = omp_get_thread_num(); part < mine.parts; part += threads) (*mine.work)(part);
    order_before(data);
  };
  order_before(&job);
  GOMP_parallel(body, &job, static_cast<unsigned>(parts), 0);
  order_after(&job);
}

// Splits [0, count) evenly and calls work(begin, end) on each thread. Small loops stay on this
// thread, since waking the others costs microseconds.
template <typename Work>
void parallel_ranges(int parts, std::int64_t count, std::int64_t floats_each, const Work& work) {
  constexpr std::int64_t kWorthwhile = 16384;
  if (count * floats_each < kWorthwhile) parts = 1;
  parallel(parts, [&](int part) {
    const std::int64_t begin = part_begin(count, part, parts);
    const std::int64_t end = part_begin(count, part + 1, parts);
    if (begin < end) work(begin, end);
  });
}

}  // namespace kolo::tensor::onednn
