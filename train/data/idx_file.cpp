#include "train/data/idx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>

#include "train/data/data_file.h"
#include "train/data/dataset.h"
#include "train/data/inflater.h"

namespace kolo::train {
namespace {

constexpr std::array<std::uint8_t, 2> kGzipMagic = {0x1f, 0x8b};
constexpr std::uint8_t kUnsignedByte = 8;

using Dimensions = std::vector<std::int64_t>;

std::int64_t product(const Dimensions& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

class IdxFile {
 public:
  explicit IdxFile(const std::filesystem::path& path) : file_(open_data_file(path)) {
    std::array<std::uint8_t, 2> start{};
    const bool is_compressed = read_some(start) == start.size() && start == kGzipMagic;
    file_.stream.clear();
    file_.stream.seekg(0);
    if (!is_compressed) return;
    inflater_ = make_inflater(file_.stream, file_.bytes, Envelope::gzip);
    if (inflater_) return;
    throw DataError(
        fmt::format("'{}' cannot be read: it is compressed, and this build has no zlib; "
                    "decompress it with gunzip, or install zlib1g-dev, configure with cmake again "
                    "and rebuild",
                    file_.name));
  }

  std::vector<std::uint8_t> elements(const Dimensions& item) {
    const Dimensions dimensions = read_dimensions(item.size() + 1);
    if (!std::equal(item.begin(), item.end(), dimensions.begin() + 1) || dimensions[0] == 0) {
      throw DataError(fmt::format("'{}' has the dimensions {}, but N{}{} were expected", file_.name,
                                  fmt::join(dimensions, "x"), item.empty() ? "" : "x",
                                  fmt::join(item, "x")));
    }
    // Below 2^63: the first dimension has 32 bits, and the others are those of an item.
    const std::int64_t count = product(dimensions);
    const std::string text = fmt::format("{}", fmt::join(dimensions, "x"));
    check_length(header_bytes(dimensions.size()) + count, text);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
    read(bytes, text);
    if (inflater_) check_end(text);
    return bytes;
  }

 private:
  static std::int64_t header_bytes(std::size_t rank) {
    return static_cast<std::int64_t>(4 * (1 + rank));
  }

  // Checks the type and the number of dimensions.
  Dimensions read_dimensions(std::size_t rank) {
    std::array<std::uint8_t, 4> word{};
    read(word, "");
    const std::array<std::uint8_t, 4> magic = {0, 0, kUnsignedByte,
                                               static_cast<std::uint8_t>(rank)};
    if (word != magic) {
      throw DataError(
          fmt::format("'{}' begins with the bytes {:02x}, but {:02x} were expected (an IDX file of "
                      "unsigned bytes, number of dimensions: {})",
                      file_.name, fmt::join(word, " "), fmt::join(magic, " "), rank));
    }
    Dimensions dimensions(rank);
    for (std::int64_t& size : dimensions) {
      read(word, "");
      for (const std::uint8_t byte : word) size = size << 8 | byte;
    }
    return dimensions;
  }

  void check_length(std::int64_t needed, const std::string& dimensions) const {
    if (inflater_ && needed / kLargestCompression > file_.bytes) {
      throw DataError(fmt::format(
          "'{}' is damaged: {} bytes ({}) are more than a compressed file of {} bytes can contain",
          file_.name, needed, dimensions, file_.bytes));
    }
    if (inflater_ || file_.bytes == needed) return;
    throw DataError(fmt::format("'{}' {}: it has {} bytes, but {} are expected for {}", file_.name,
                                file_.bytes < needed ? "is truncated" : "is too long", file_.bytes,
                                needed, dimensions));
  }

  // Fills `out`. `dimensions` are for the message; empty inside the header.
  void read(std::span<std::uint8_t> out, const std::string& dimensions) {
    if (read_some(out) == out.size()) return;
    const std::string fault = inflater_ ? inflater_->fault() : "";
    if (!fault.empty()) refuse_damaged(fault);
    throw DataError(
        fmt::format("'{}' is truncated: it ends {}", file_.name,
                    dimensions.empty() ? "inside its header" : "before the last of " + dimensions));
  }

  // Requires the end of the compressed data.
  void check_end(const std::string& dimensions) {
    std::array<std::uint8_t, 1> extra{};
    if (read_some(extra) > 0) {
      throw DataError(
          fmt::format("'{}' is too long: inflated, it has more bytes than expected for {}",
                      file_.name, dimensions));
    }
    if (const std::string fault = inflater_->fault(); !fault.empty()) refuse_damaged(fault);
  }

  [[noreturn]] void refuse_damaged(const std::string& fault) const {
    throw DataError(fmt::format("'{}' is damaged: it cannot be inflated: {}", file_.name, fault));
  }

  std::size_t read_some(std::span<std::uint8_t> out) {
    if (inflater_) return inflater_->read(out);
    file_.stream.read(reinterpret_cast<char*>(out.data()),
                      static_cast<std::streamsize>(out.size()));
    return static_cast<std::size_t>(file_.stream.gcount());
  }

  DataFile file_;
  std::unique_ptr<Inflater> inflater_;  // null for a plain file
};

}  // namespace

std::vector<std::uint8_t> read_idx(const std::filesystem::path& path,
                                   const std::vector<std::int64_t>& item) {
  return IdxFile(path).elements(item);
}

}  // namespace kolo::train
