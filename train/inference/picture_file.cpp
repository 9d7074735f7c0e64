#include "train/inference/picture_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "train/data/data_file.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kMostPixels = 100'000'000;

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
  throw DataError(
      fmt::format("{}: {}; expected a PPM or PGM file with values up to 255", name, reason));
}

// The next number of a header; comments begin with #.
std::int64_t next_number(std::istream& in, const std::string& name) {
  while (in >> std::ws && in.peek() == '#')
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  std::int64_t number = -1;
  if (!(in >> number) || number < 0) refuse(name, "it is damaged or truncated");
  return number;
}

}  // namespace

Picture read_picture(const std::string& path) {
  DataFile file = open_data_file(path);
  std::istream& in = file.stream;
  char mark = 0, kind = 0;
  in.get(mark).get(kind);
  if (!in || mark != 'P' || std::string("2356").find(kind) == std::string::npos)
    refuse(path, "it is of another kind");
  const bool is_binary = kind >= '5', has_colors = kind == '3' || kind == '6';
  const std::int64_t width = next_number(in, path), height = next_number(in, path);
  if (width < 1 || height < 1 || height > kMostPixels / width)
    refuse(path, fmt::format("it would have {} x {} pixels", width, height));
  if (const std::int64_t most = next_number(in, path); most != 255)
    refuse(path, fmt::format("its values go to {}", most));
  Picture picture{{static_cast<int>(height), static_cast<int>(width), has_colors ? 3 : 1}, {}};
  picture.pixels.resize(static_cast<std::size_t>(picture.shape.elements()));
  if (is_binary) {
    in.get();  // the single space after the header
    in.read(reinterpret_cast<char*>(picture.pixels.data()),
            static_cast<std::streamsize>(picture.pixels.size()));
    if (!in) refuse(path, "it is truncated");
    return picture;
  }
  for (std::uint8_t& pixel : picture.pixels) {
    const std::int64_t value = next_number(in, path);
    if (value > 255) refuse(path, fmt::format("it has the value {}", value));
    pixel = static_cast<std::uint8_t>(value);
  }
  return picture;
}

Picture with_channels(const Picture& picture, int channels) {
  if (picture.shape.channels == channels) return picture;
  Picture result{picture.shape, {}};
  result.shape.channels = channels;
  const auto from = static_cast<std::size_t>(picture.shape.channels);
  for (std::size_t i = 0; i < picture.pixels.size(); i += from) {
    const std::uint8_t* const pixel = picture.pixels.data() + i;
    const int luma =
        from == 1 ? pixel[0] : (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2]) / 1000;
    result.pixels.insert(result.pixels.end(), static_cast<std::size_t>(channels),
                         static_cast<std::uint8_t>(luma));
  }
  return result;
}

}  // namespace kolo::train
