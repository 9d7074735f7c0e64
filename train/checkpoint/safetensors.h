// Reader and writer of safetensors files.
//
//   8 bytes  length N of the header, little endian
//   N bytes  JSON: {"__metadata__": {"name": "text", ...},
//                   "conv1.weight": {"dtype": "F32", "shape": [64,3,7,7], "data_offsets":
//                   [0,37632]}}
//   rest     the data of all tensors, little endian; offsets are relative to its start
//
// The header is at most 100 MB. The tensors cover the data without holes and without overlaps.
// Source: https://github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::train {

// Error: a file is damaged, does not have what is expected, or cannot be written. The message names
// the file.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct StoredTensor {
  std::string name;
  std::string dtype;  // "F32", "I64", ...
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes, from the start of the data
};

// "64 x 3 x 7 x 7"; "a scalar" for none.
std::string shape_text(std::span<const std::int64_t> shape);

// A file that is open for reading.
class SafetensorsFile {
 public:
  // Reads and checks the header. Throws CheckpointError.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // In the order of their data.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Null if there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  // Reads a tensor of F64, F32, F16, BF16 or I64 as float32. Throws CheckpointError for another
  // dtype or number of elements, or if the file cannot be read.
  void read(const StoredTensor& tensor, std::span<float> out);

 private:
  void parse_header(std::string_view text, std::uint64_t data_bytes);
  [[noreturn]] void refuse(const std::string& reason) const;

  std::string path_;
  std::ifstream file_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<StoredTensor> tensors_;
};

// A tensor to write.
struct TensorSource {
  std::string name;
  std::vector<std::int64_t> shape;
  std::function<void(std::span<float>)> fill;  // writes the elements; F32
  std::int64_t number = 0;                     // without `fill`: the value of an I64 scalar
};
std::size_t elements_of(const TensorSource& tensor);

// Writes a file beside `path`, waits until it is on the disk, and renames it, so that a failure
// leaves an earlier file as it was. Throws CheckpointError.
void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       std::span<const TensorSource> tensors);

}  // namespace kolo::train
