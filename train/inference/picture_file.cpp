#include "train/inference/picture_file.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "train/data/data_file.h"
#include "train/data/dataset.h"

namespace kolo::train {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
  throw DataError(fmt::format("{}: {}; expected a JPEG, PNG, PPM or PGM file with values up to 255",
                              name, reason));
}

// The next number of a header; comments begin with #.
std::int64_t next_number(std::istream& in, const std::string& name) {
  while (in >> std::ws && in.peek() == '#')
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  std::int64_t number = -1;
  if (!(in >> number) || number < 0) refuse(name, "it is damaged or truncated");
  return number;
}

void read_plain(std::istream& in, const std::string& name, std::vector<std::uint8_t>& values) {
  for (std::uint8_t& one : values) {
    const std::int64_t value = next_number(in, name);
    if (value > 255) refuse(name, fmt::format("it has the value {}", value));
    one = static_cast<std::uint8_t>(value);
  }
}

}  // namespace

Image read_picture(const std::string& path) {
  DataFile file = open_data_file(path);
  std::istream& in = file.stream;
  if (in.peek() != 'P') return read_image(path);
  char mark = 0, kind = 0;
  in.get(mark).get(kind);
  if (!in || std::string("2356").find(kind) == std::string::npos)
    refuse(path, "it is of another kind");
  const bool is_binary = kind >= '5', has_colors = kind == '3' || kind == '6';
  const std::int64_t width = next_number(in, path), height = next_number(in, path);
  if (width < 1 || height < 1 || height > kMostImagePixels / width)
    refuse(path, fmt::format("it would have {} x {} pixels", width, height));
  if (const std::int64_t most = next_number(in, path); most != 255)
    refuse(path, fmt::format("its values go to {}", most));
  std::vector<std::uint8_t> values(static_cast<std::size_t>(width * height * (has_colors ? 3 : 1)));
  if (is_binary) {
    in.get();  // the single space after the header
    in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size()));
    if (!in) refuse(path, "it is truncated");
  } else {
    read_plain(in, path, values);
  }
  Image picture{static_cast<int>(height), static_cast<int>(width), std::move(values)};
  if (!has_colors) {
    const std::vector<std::uint8_t> grey = std::exchange(picture.pixels, {});
    for (const std::uint8_t value : grey) picture.pixels.insert(picture.pixels.end(), 3, value);
  }
  return picture;
}

std::vector<std::uint8_t> pixels_with_channels(const Image& picture, int channels) {
  if (channels == 3) return picture.pixels;
  std::vector<std::uint8_t> result;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
    const std::uint8_t* const pixel = picture.pixels.data() + i;
    const int luma = (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2]) / 1000;
    result.push_back(static_cast<std::uint8_t>(luma));
  }
  return result;
}

}  // namespace kolo::train
