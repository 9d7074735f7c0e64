// Image files and their pixels by Pillow, from image_reference.txt (make_image_reference.py).
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "train/data/image/image_file.h"

namespace kolo::train {

using Bytes = std::vector<std::uint8_t>;

struct ReferenceImages {
  struct Square {
    std::string name;
    int side = 0;
    Bytes pixels;
  };
  std::map<std::string, Bytes> files;
  std::map<std::string, Image> images;
  std::vector<Square> squares;
};

inline Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(at, 2), nullptr, 16)));
  return bytes;
}

inline ReferenceImages reference_images() {
  std::ifstream file(KOLO_SOURCE_DIR "/test/train/data/image_reference.txt");
  ReferenceImages all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name, hex;
    int width = 0, height = 0;
    words >> kind >> name;
    if (kind != "file") words >> width;
    if (kind == "pixels") words >> height;
    words >> hex;
    if (kind == "file") all.files[name] = from_hex(hex);
    if (kind == "pixels") all.images[name] = {height, width, from_hex(hex)};
    if (kind == "square") all.squares.push_back({name, width, from_hex(hex)});
  }
  if (all.images.empty()) throw std::runtime_error("image_reference.txt cannot be read");
  return all;
}

}  // namespace kolo::train
