#include "transports/cuda/shutdown.h"

#include <atomic>

namespace kolo::cuda {

void keep(std::unique_ptr<Kept> stuck) noexcept {
  static std::atomic<Kept*> kept{nullptr};
  Kept* const first = stuck.release();
  first->next = kept.load();
  while (!kept.compare_exchange_weak(first->next, first)) {
  }
}

}  // namespace kolo::cuda
