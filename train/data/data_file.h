// Files of data sets, and the checks before a data set reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace kolo::train {

// An open file.
struct DataFile {
  std::string name;  // its path, for messages
  std::ifstream stream;
  std::int64_t bytes = 0;  // its length
};

// Opens a file for reading. Throws DataError with its name if it cannot be opened, or if it is a
// pipe, a socket or a device, which could block forever.
DataFile open_data_file(const std::filesystem::path& path);

// Throws DataError unless `directory` can be listed. `scheme` is the data set in the message:
// "svhn".
void require_directory(std::string_view scheme, const std::filesystem::path& directory);

}  // namespace kolo::train
