#include "transports/posix/host/memory_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kolo::inline v0::posix {

namespace {

bool membarrier(int command) noexcept { return ::syscall(__NR_membarrier, command, 0, 0) == 0; }

}  // namespace

bool accept_barriers() noexcept {
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
         membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void barrier_everywhere() noexcept { membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }

}  // namespace kolo::inline v0::posix
