// Reader of MATLAB 5 files, as far as data sets need it.
//
// check_mat_framing is our own code. It walks the tags of the file (type, length), so it finds a
// truncated download at once. Libraries return zeros, an unspecific error, or allocate gigabytes in
// that case. With zlib it also inflates compressed data once, up to the checksum at the end, which
// matio does not check (1.5.23). read_mat_variable uses matio. In a build without matio it throws
// an error that says so (mat_file_absent.cpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::train {

// A numeric array, column-major; the elements are in the machine's byte order.
struct MatArray {
  std::vector<std::int64_t> dimensions;
  std::string element;  // MATLAB's name: "uint8", "double", ...
  std::vector<std::uint8_t> bytes;
  // For messages: "32x32x3x4434 uint8".
  std::string text() const;
};

// Throws DataError unless the file can be opened, begins as a MATLAB 5 file, is as long as its tags
// say, and its compressed data can be inflated (in a build with zlib).
void check_mat_framing(const std::filesystem::path& path);

// Reads one variable. Throws DataError with the file and the variable if it is missing, not a real
// numeric array, or damaged, and in a build without matio.
MatArray read_mat_variable(const std::filesystem::path& path, std::string_view variable);

}  // namespace kolo::train
