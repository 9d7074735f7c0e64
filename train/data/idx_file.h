// Reader of IDX files of unsigned bytes, plain or compressed by gzip.
//
// Format (LeCun, Cortes, Burges: "The MNIST database of handwritten digits"): two zero bytes, the
// type of the elements (8: unsigned byte), the number of dimensions; then each dimension as 32
// bits, big-endian; then the elements, with the last dimension innermost. The first bytes of a
// file, not its name, tell whether it is compressed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace kolo::train {

// Returns the elements of a file whose dimensions are N, at least 1, and those of one `item`: {28,
// 28} for images, none for labels. Checks the header against the file's length before it allocates
// memory. Throws DataError with the file's name if the file is of another form, truncated, longer
// than its header says, or damaged; and for a compressed file in a build without zlib.
std::vector<std::uint8_t> read_idx(const std::filesystem::path& path,
                                   const std::vector<std::int64_t>& item);

}  // namespace kolo::train
