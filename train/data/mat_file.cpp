#include "train/data/mat_file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <utility>

#include "train/data/data_file.h"
#include "train/data/dataset.h"
#include "train/data/inflater.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kHeaderBytes = 128;
constexpr std::int64_t kTagBytes = 8;
constexpr std::size_t kInflatedAtOnce = std::size_t{256} << 10;
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
        "'{}' is not a MATLAB 5 file: its header does not end with the byte order mark", name));
  }
  return order == "IM";
}

struct Tag {
  std::uint32_t type = 0;
  std::int64_t length = 0;  // bytes that follow the tag
};

class Framing {
 public:
  explicit Framing(DataFile file)
      : file_(std::move(file.stream)),
        name_(std::move(file.name)),
        size_(file.bytes),
        is_little_endian_(read_header(file_, name_)) {}

  void check() {
    if (size_ == kHeaderBytes)
      throw DataError(fmt::format("'{}' is truncated: nothing follows its header", name_));
    for (std::int64_t position = kHeaderBytes; position < size_;) {
      const Tag tag = tag_at(position, size_);
      const std::int64_t end = position + kTagBytes + tag.length;
      if (tag.type == kMatrix) check_matrix(position + kTagBytes, end);
      if (tag.type == kCompressed) check_compressed(position, tag.length);
      if (tag.type == 0)
        throw DataError(fmt::format(
            "'{}' is damaged: the element that begins at byte {} has no type", name_, position));
      position = end;
    }
  }

 private:
  static constexpr std::uint32_t kMatrix = 14;
  static constexpr std::uint32_t kCompressed = 15;

  // Checks the parts of an uncompressed array (flags, dimensions, name, data), each padded to 8
  // bytes.
  void check_matrix(std::int64_t position, std::int64_t end) {
    while (position < end) position += kTagBytes + (tag_at(position, end).length + 7) / 8 * 8;
  }

  void check_compressed(std::int64_t position, std::int64_t length) {
    file_.seekg(position + kTagBytes);
    const auto inflater = make_inflater(file_, length, Envelope::zlib);
    if (!inflater) return;
    std::vector<std::uint8_t> piece(kInflatedAtOnce);
    while (inflater->read(piece) == piece.size()) {
    }
    const std::string why = inflater->fault();
    if (why.empty()) return;
    throw DataError(fmt::format(
        "'{}' is damaged: the compressed element that begins at byte {} cannot be inflated: {}",
        name_, position, why));
  }

  Tag tag_at(std::int64_t position, std::int64_t end) {
    std::array<char, kTagBytes> bytes{};
    file_.seekg(position);
    file_.read(bytes.data(), kTagBytes);
    Tag tag{word_at(bytes.data(), is_little_endian_), word_at(bytes.data() + 4, is_little_endian_)};
    if (tag.type >> 16 != 0)
      tag.length = 0;  // a small element: up to 4 bytes of data, inside the tag
    if (file_.gcount() < kTagBytes || position + kTagBytes + tag.length > end) {
      throw DataError(
          fmt::format("'{}' is truncated or damaged: it has {} bytes, and the element that begins "
                      "at byte {} ends at byte {}, but should "
                      "end by byte {}",
                      name_, size_, position, position + kTagBytes + tag.length, end));
    }
    return tag;
  }

  std::ifstream file_;
  std::string name_;
  std::int64_t size_;
  bool is_little_endian_;
};

}  // namespace

std::string MatArray::text() const {
  return fmt::format("{} {}", fmt::join(dimensions, "x"), element);
}

void check_mat_framing(const std::filesystem::path& path) { Framing(open_data_file(path)).check(); }

}  // namespace kolo::train
