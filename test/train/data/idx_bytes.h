// Writes small IDX files and folders of MNIST's form for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/support/temporary_folder.h"

namespace kolo::train {

// An IDX file of unsigned bytes with these dimensions in its header.
inline std::string idx_bytes(const std::vector<std::uint32_t>& dimensions,
                             const std::vector<std::uint8_t>& elements) {
  std::string bytes{0, 0, 8, static_cast<char>(dimensions.size())};
  for (const std::uint32_t size : dimensions) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xff);
  }
  return bytes + std::string(elements.begin(), elements.end());
}

// Pixel (row, column) of image n is row + 3 column + 7 n, modulo 256.
inline std::string image_bytes(std::uint32_t images) {
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t n = 0; n < images; ++n) {
    for (std::uint32_t at = 0; at < 28 * 28; ++at)
      pixels.push_back(static_cast<std::uint8_t>(at / 28 + 3 * (at % 28) + 7 * n));
  }
  return idx_bytes({images, 28, 28}, pixels);
}

inline std::string label_bytes(const std::vector<std::uint8_t>& labels) {
  return idx_bytes({static_cast<std::uint32_t>(labels.size())}, labels);
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A folder with a training split.
class MnistFolder {
 public:
  explicit MnistFolder(const std::string& images = image_bytes(3),
                       const std::string& labels = label_bytes({5, 0, 9}),
                       const std::string& images_name = "train-images-idx3-ubyte",
                       const std::string& labels_name = "train-labels-idx1-ubyte") {
    write_bytes(folder_ / images_name, images);
    write_bytes(folder_ / labels_name, labels);
  }
  std::string text() const { return folder_.path().string(); }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace kolo::train
