// Files of single pictures: JPEG, PNG, and portable maps (PPM, PGM), binary or plain, with values
// up to 255.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/data/image/image_file.h"

namespace kolo::train {

// Grey is repeated in all channels. Throws DataError with the name of the file.
Image read_picture(const std::string& path);

// Its pixels with 1 or 3 channels. With one, colors become their luma (ITU-R 601).
std::vector<std::uint8_t> pixels_with_channels(const Image& picture, int channels);

}  // namespace kolo::train
