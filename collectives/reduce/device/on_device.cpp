#include "collectives/reduce/device/on_device.h"

#include <iterator>
#include <vector>

#include "collectives/element.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/math.h"

namespace kolo::inline v0::device {

std::shared_ptr<const RankDevice> on_device(int number) {
  auto device = std::make_shared<RankDevice>();
  device->number = number;
  device->runtime_version = runtime_version();
  device->make_math = [](int chosen) {
    const std::vector<ElementType> types(std::begin(kElementTypes), std::end(kElementTypes));
    return std::make_unique<KernelMath>(types, chosen);
  };
  return device;
}

}  // namespace kolo::inline v0::device
