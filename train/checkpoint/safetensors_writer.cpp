#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "train/checkpoint/safetensors.h"

namespace kolo::train {
namespace {

constexpr std::size_t kAlignment = 8;  // of the data in the file, as the official writer aligns it

std::uint64_t bytes_of(const TensorSource& tensor) {
  return tensor.fill ? elements_of(tensor) * sizeof(float) : sizeof(std::int64_t);
}

std::string header_of(const std::map<std::string, std::string>& metadata,
                      std::span<const TensorSource> tensors) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t begin = 0;
  for (const TensorSource& tensor : tensors) {
    const std::uint64_t end = begin + bytes_of(tensor);
    header[tensor.name] = {{"dtype", tensor.fill ? "F32" : "I64"},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

// A file that is written beside its final place. Removed by the destructor unless it was moved
// there.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) : path_(path), part_(beside(path)) {
    descriptor_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) refuse();
  }
  ~PartialFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!is_moved_) unlink(part_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t count = ::write(descriptor_, from, bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) refuse();
      from += count;
      bytes -= static_cast<std::size_t>(count);
    }
  }

  void move_to_its_place() {
    if (fsync(descriptor_) != 0) refuse();
    if (close(std::exchange(descriptor_, -1)) != 0) refuse();
    if (rename(part_.c_str(), path_.c_str()) != 0) refuse();
    is_moved_ = true;
    const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;  // without permission to list it; the data itself is on the disk
    fsync(folder);
    close(folder);
  }

 private:
  static std::string folder_of(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    return folder.empty() ? "." : folder.string();
  }
  static std::string beside(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename().string();
    return fmt::format("{}/.{}.{}.part", folder_of(path), name, getpid());
  }
  [[noreturn]] void refuse() const {
    throw CheckpointError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  }

  std::string path_, part_;
  int descriptor_ = -1;
  bool is_moved_ = false;
};

}  // namespace

std::size_t elements_of(const TensorSource& tensor) {
  std::size_t elements = 1;
  for (const std::int64_t side : tensor.shape) elements *= static_cast<std::size_t>(side);
  return elements;
}

void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       std::span<const TensorSource> tensors) {
  PartialFile file(path);
  const std::string header = header_of(metadata, tensors);
  const auto length = static_cast<std::uint64_t>(header.size());
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  std::vector<float> elements;
  for (const TensorSource& tensor : tensors) {
    if (!tensor.fill) {
      file.write(&tensor.number, sizeof tensor.number);
      continue;
    }
    elements.resize(elements_of(tensor));
    tensor.fill(elements);
    file.write(elements.data(), elements.size() * sizeof(float));
  }
  file.move_to_its_place();
}

}  // namespace kolo::train
