// Image files: JPEG and PNG, decoded to RGB.
//
// The pixels are those of Pillow's Image.open(file).convert("RGB"), so that training sees what
// torchvision's ImageFolder sees: grey is repeated in all channels, CMYK is converted, an alpha
// channel is dropped (not blended), palettes are looked up, and of 16 bits the upper 8 count. The
// orientation of EXIF is ignored. The kind is found by the first bytes, not by the file's name.
//
// Unlike Pillow, a file with damaged pixel data is an error. libjpeg-turbo and libpng decode; in a
// build without one of them its files are refused with the name of the missing package
// (*_absent.cpp). All functions may be called by several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kolo::train {

// Larger images are refused before memory is allocated for them.
inline constexpr std::int64_t kMostImagePixels = 100'000'000;

struct Image {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;  // height, width, 3: red, green, blue
};

// Decodes a file in memory. Throws DataError with `name` and the library's reason if it is neither
// JPEG nor PNG, damaged, truncated or too large.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name);

// Reads and decodes a file. Throws DataError, also if it cannot be read.
Image read_image(const std::filesystem::path& path);

}  // namespace kolo::train
