#include "transports/cuda/chosen_device.h"

#include "transports/cuda/device.h"
#include "transports/settings.h"

namespace kolo::inline v0::cuda {

int choose_device(Driver& driver, int asked, int rank) {
  if (asked >= 0) return asked;
  const Settings settings = read_settings();
  if (settings.cuda_device) return *settings.cuda_device;
  if (!driver.why_absent().empty() || driver.init() != kSuccess) return 0;
  if (const int current = current_device(driver); current >= 0) return current;
  const int count = count_devices(driver);
  return count == 0 ? 0 : settings.local_rank.value_or(rank) % count;
}

}  // namespace kolo::inline v0::cuda
