#include "train/data/image/image_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "train/data/data_file.h"
#include "train/data/dataset.h"
#include "train/data/image/decoders.h"

namespace kolo::train {
namespace {

// Of the file, not of the pixels. The largest JPEG of kMostImagePixels is about this long.
constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 30;
constexpr std::array<std::uint8_t, 3> kJpegMagic = {0xff, 0xd8, 0xff};
constexpr std::array<std::uint8_t, 8> kPngMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool begins_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::ranges::equal(bytes.first(magic.size()), magic);
}

}  // namespace

Image blank_image(std::int64_t height, std::int64_t width, const std::string& name) {
  if (height < 1 || width < 1 || height > kMostImagePixels / width) {
    throw DataError(fmt::format("'{}' has {} x {} pixels, but 1 to {} pixels were expected", name,
                                width, height, kMostImagePixels));
  }
  return {static_cast<int>(height), static_cast<int>(width),
          std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
}

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (begins_with(bytes, kJpegMagic)) return decode_jpeg(bytes, name);
  if (begins_with(bytes, kPngMagic)) return decode_png(bytes, name);
  if (bytes.empty()) throw DataError(fmt::format("'{}' is empty", name));
  throw DataError(fmt::format("'{}' is neither JPEG nor PNG; it begins with the bytes {:02x}", name,
                              fmt::join(bytes.first(std::min<std::size_t>(bytes.size(), 4)), " ")));
}

Image read_image(const std::filesystem::path& path) {
  DataFile file = open_data_file(path);
  if (file.bytes > kMostFileBytes) {
    throw DataError(fmt::format("'{}' has {} bytes, but an image of at most {} was expected",
                                file.name, file.bytes, kMostFileBytes));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.bytes));
  file.stream.read(reinterpret_cast<char*>(bytes.data()), file.bytes);
  if (!file.stream) throw DataError(fmt::format("'{}' cannot be read completely", file.name));
  return decode_image(bytes, file.name);
}

}  // namespace kolo::train
