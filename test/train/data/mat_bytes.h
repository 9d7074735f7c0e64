// Writes small MATLAB 5 files for tests: not compressed, little-endian, numeric arrays only.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/support/temporary_folder.h"

namespace kolo::train {

using test::TemporaryFolder;

// MATLAB's codes for array classes and data types.
struct MatType {
  std::uint32_t array_class;
  std::uint32_t data_type;
};
inline constexpr MatType kMatDouble{6, 9};
inline constexpr MatType kMatUint8{9, 2};
inline constexpr MatType kMatInt16{10, 3};

class MatBytes {
 public:
  MatBytes() {
    bytes_ = "MATLAB 5.0 MAT-file, written by a test";
    bytes_.resize(124, ' ');
    bytes_ += std::string("\x00\x01IM", 4);
  }

  template <class Element>
  MatBytes& add(const std::string& name, MatType type, const std::vector<std::int32_t>& dimensions,
                const std::vector<Element>& data) {
    std::string body;
    const std::uint32_t flags[2] = {type.array_class, 0};
    element(body, 6, flags, sizeof(flags));
    element(body, 5, dimensions.data(), dimensions.size() * sizeof(std::int32_t));
    element(body, 1, name.data(), name.size());
    element(body, type.data_type, data.data(), data.size() * sizeof(Element));
    element(bytes_, 14, body.data(), body.size());
    return *this;
  }

  // The tag of eight bytes before an element of `size` bytes.
  static std::string tag(std::uint32_t type, std::size_t size) {
    const std::uint32_t words[2] = {type, static_cast<std::uint32_t>(size)};
    return {reinterpret_cast<const char*>(words), sizeof(words)};
  }

  const std::string& bytes() const { return bytes_; }
  void write(const std::filesystem::path& path) const { write(path, bytes_); }
  static void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  static void element(std::string& to, std::uint32_t type, const void* data, std::size_t size) {
    to += tag(type, size);
    to.append(static_cast<const char*>(data), size);
    to.resize((to.size() + 7) / 8 * 8);
  }

  std::string bytes_;
};

}  // namespace kolo::train
