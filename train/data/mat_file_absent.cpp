// read_mat_variable in a build without matio.
#include <fmt/format.h>

#include "train/data/dataset.h"
#include "train/data/mat_file.h"

namespace kolo::train {

MatArray read_mat_variable(const std::filesystem::path& path, std::string_view) {
  throw DataError(
      fmt::format("'{}' cannot be read: this build has no support for .mat files; install "
                  "libmatio-dev, configure with cmake "
                  "again and rebuild, or use --dataset digits",
                  path.string()));
}

}  // namespace kolo::train
