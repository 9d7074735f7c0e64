// decode_png in a build without libpng.
#include <fmt/format.h>

#include "train/data/dataset.h"
#include "train/data/image/decoders.h"

namespace kolo::train {

Image decode_png(std::span<const std::uint8_t>, const std::string& name) {
  throw DataError(
      fmt::format("'{}' cannot be read: this build has no support for PNG; install libpng-dev, "
                  "configure with cmake again and rebuild",
                  name));
}

}  // namespace kolo::train
