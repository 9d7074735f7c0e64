// The decoders behind decode_image, one per file format. Each has a source for builds with its
// library, and one that refuses (*_absent.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "train/data/image/image_file.h"

namespace kolo::train {

Image decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name);
Image decode_png(std::span<const std::uint8_t> bytes, const std::string& name);

// An image of this size, all black. Throws DataError if it has no pixels or too many.
Image blank_image(std::int64_t height, std::int64_t width, const std::string& name);

}  // namespace kolo::train
