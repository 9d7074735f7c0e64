#include "transports/cuda/shutdown.h"

#include <atomic>

namespace kolo::inline v0::cuda {

void keep(std::unique_ptr<KeptUntilExit> stuck) noexcept {
  static std::atomic<KeptUntilExit*> kept{nullptr};
  KeptUntilExit* const first = stuck.release();
  first->next = kept.load();
  while (!kept.compare_exchange_weak(first->next, first)) {
  }
}

}  // namespace kolo::inline v0::cuda
