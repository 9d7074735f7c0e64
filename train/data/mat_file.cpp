#include "train/data/mat_file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "train/data/dataset.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kHeaderBytes = 128;
constexpr std::int64_t kTagBytes = 8;
constexpr std::string_view kMagic = "MATLAB 5.0 MAT-file";

std::uint32_t word_at(const char* bytes, bool is_little_endian) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const auto byte = static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]));
    value |= byte << (8 * (is_little_endian ? i : 3 - i));
  }
  return value;
}

// The last two bytes of the header are 'MI' as a 16-bit number, so they tell the byte order.
bool read_header(std::ifstream& file, const std::string& name) {
  std::array<char, kHeaderBytes> header{};
  file.read(header.data(), kHeaderBytes);
  if (file.gcount() < kHeaderBytes || std::string_view(header.data(), kMagic.size()) != kMagic) {
    throw DataError(fmt::format(
        "'{}' is not a MATLAB 5 file: it does not begin with '{}' and a header of {} bytes", name,
        kMagic, kHeaderBytes));
  }
  const std::string_view order(header.data() + 126, 2);
  if (order != "IM" && order != "MI") {
    throw DataError(fmt::format(
        "'{}' is not a MATLAB 5 file: its header does not end with the mark of the byte order",
        name));
  }
  return order == "IM";
}

}  // namespace

std::string MatArray::text() const {
  return fmt::format("{} {}", fmt::join(dimensions, "x"), element);
}

void check_mat_framing(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(fmt::format("'{}' cannot be opened: {}", name, std::strerror(errno)));
  const bool is_little_endian = read_header(file, name);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  std::int64_t position = kHeaderBytes;
  if (position == size)
    throw DataError(fmt::format("'{}' is truncated: nothing follows its header", name));
  while (position < size) {
    std::array<char, kTagBytes> tag{};
    file.seekg(position);
    file.read(tag.data(), kTagBytes);
    const std::int64_t length = word_at(tag.data() + 4, is_little_endian);
    if (file.gcount() < kTagBytes || position + kTagBytes + length > size) {
      throw DataError(
          fmt::format("'{}' is truncated: it has {} bytes, but the variable that begins at byte {} "
                      "ends at byte {}",
                      name, size, position, position + kTagBytes + length));
    }
    position += kTagBytes + length;
  }
}

}  // namespace kolo::train
