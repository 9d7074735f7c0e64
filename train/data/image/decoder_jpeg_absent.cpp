// decode_jpeg in a build without libjpeg.
#include <fmt/format.h>

#include "train/data/dataset.h"
#include "train/data/image/decoders.h"

namespace kolo::train {

Image decode_jpeg(std::span<const std::uint8_t>, const std::string& name) {
  throw DataError(
      fmt::format("'{}' cannot be read: this build has no support for JPEG; install "
                  "libjpeg-dev, configure with cmake again and rebuild",
                  name));
}

}  // namespace kolo::train
