// Files of single pictures: portable maps (PPM, PGM), binary or plain, with values up to 255.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/data/dataset.h"

namespace kolo::train {

struct Picture {
  ImageShape shape;                  // of 1 or 3 channels
  std::vector<std::uint8_t> pixels;  // height, width, channels
};

// Throws DataError with the name of the file.
Picture read_picture(const std::string& path);

// The same picture with 1 or 3 channels: grey is repeated, colors become their luma (ITU-R 601).
Picture with_channels(const Picture& picture, int channels);

}  // namespace kolo::train
