#include "collectives/engine/fork_generation.h"

#include <pthread.h>
#include <atomic>

namespace kolo::inline v0 {
namespace {

std::atomic<std::uint64_t> generation{0};

void count() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint64_t fork_generation() {
  // If registration fails for lack of memory, a child is not detected.
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, count);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace kolo::inline v0
