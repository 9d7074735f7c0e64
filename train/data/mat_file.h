// MATLAB 5 files: the little that a data set needs of them.
//
// check_mat_framing is our own: it walks the file's tags (type, length), which finds a truncated
// download at once and by name, where libraries return zeros, a bare "error", or ask for gigabytes;
// and it inflates what is compressed once, to the checksum at its end, which matio does not look at
// (1.5.23 fills up with what it finds). read_mat_variable goes through matio, and in a build
// without matio is the clear error that says so (mat_file_absent.cpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::train {

// A numeric array, first dimension innermost ("column-major"), elements as they are in memory.
struct MatArray {
  std::vector<std::int64_t> dimensions;
  std::string element;  // MATLAB's name: "uint8", "double", ...
  std::vector<std::uint8_t> bytes;
  // For messages: "32x32x3x4434 uint8".
  std::string text() const;
};

// Throws DataError unless the file can be opened, begins as a MATLAB 5 file, is as long as its
// tags say, and what is compressed can be inflated.
void check_mat_framing(const std::filesystem::path& path);

// Why the next `bytes` of `file` are not one whole zlib stream; empty where they are, and in a
// build without matio.
std::string why_not_inflated(std::istream& file, std::int64_t bytes);

// Reads one variable. Throws DataError naming the file and the variable: not there, not a real
// numeric array, damaged, or a build without matio.
MatArray read_mat_variable(const std::filesystem::path& path, std::string_view variable);

}  // namespace kolo::train
