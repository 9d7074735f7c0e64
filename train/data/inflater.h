// Inflater of compressed parts of data files, with zlib.
//
// A build without zlib has none (inflater_absent.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>

namespace kolo::train {

// Deflate cannot shrink data by more than this factor.
inline constexpr std::int64_t kLargestCompression = 1032;

// Format of the header and of the checksum around deflated data.
enum class Envelope {
  zlib,  // elements of .mat files
  gzip   // .gz files
};

// One compressed stream, read piece by piece.
class Inflater {
 public:
  virtual ~Inflater() = default;
  // Fills `out` and returns its size. Returns less where the stream ends or is damaged.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
  // Call after read() has returned less than the size of its buffer. Returns how the stream is
  // damaged; empty if it is complete, its checksum is right, and no bytes follow it.
  virtual std::string fault() const = 0;
};

// Makes an inflater for the next `bytes` of `file`, which is borrowed. Returns nullptr in a build
// without zlib.
std::unique_ptr<Inflater> make_inflater(std::istream& file, std::int64_t bytes, Envelope envelope);

}  // namespace kolo::train
