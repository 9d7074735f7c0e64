#include "train/data/data_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "train/data/dataset.h"

namespace kolo::train {

DataFile open_data_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  using Type = std::filesystem::file_type;
  if (kind == Type::fifo || kind == Type::socket || kind == Type::character) {
    throw DataError(
        fmt::format("'{}' is not a regular file: reading it could block forever", name));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw DataError(fmt::format("'{}' cannot be opened: {}", name, std::strerror(errno)));
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) throw DataError(fmt::format("'{}' cannot be read: {}", name, error.message()));
  return {name, std::move(stream), static_cast<std::int64_t>(bytes)};
}

void require_directory(std::string_view scheme, const std::filesystem::path& directory) {
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) {
    const std::filesystem::directory_iterator listing(directory, error);
    if (!error) return;
  }
  throw DataError(
      fmt::format("data set '{}:{}': '{}' {}", scheme, directory.string(), directory.string(),
                  error ? "cannot be listed: " + error.message() : "is not a directory"));
}

}  // namespace kolo::train
