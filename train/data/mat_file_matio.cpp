// read_mat_variable with matio.
#include <fmt/format.h>
#include <matio.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "train/data/dataset.h"
#include "train/data/inflater.h"
#include "train/data/mat_file.h"

namespace kolo::train {
namespace {

struct CloseFile {
  void operator()(mat_t* file) const { Mat_Close(file); }
};
struct FreeVariable {
  void operator()(matvar_t* variable) const { Mat_VarFree(variable); }
};

std::string_view element_name(matio_classes type) {
  switch (type) {
    case MAT_C_UINT8:
      return "uint8";
    case MAT_C_INT8:
      return "int8";
    case MAT_C_UINT16:
      return "uint16";
    case MAT_C_INT16:
      return "int16";
    case MAT_C_UINT32:
      return "uint32";
    case MAT_C_INT32:
      return "int32";
    case MAT_C_SINGLE:
      return "single";
    case MAT_C_DOUBLE:
      return "double";
    case MAT_C_CHAR:
      return "char";
    case MAT_C_CELL:
      return "cell";
    case MAT_C_STRUCT:
      return "struct";
    default:
      return "unknown";
  }
}

// The size of a variable according to its description. Throws if a file of this length cannot
// contain it, before memory is allocated.
std::size_t bytes_of(const matvar_t& variable, std::size_t file_bytes, const std::string& what) {
  constexpr auto kLargest = static_cast<std::size_t>(kLargestCompression);
  std::size_t bytes = Mat_SizeOfClass(variable.class_type);
  for (int i = 0; i < variable.rank; ++i) {
    const std::size_t size = variable.dims[i];
    if (size != 0 && bytes > kLargest * file_bytes / size) {
      throw DataError(fmt::format(
          "{} is damaged: its size is more than a file of {} bytes can contain", what, file_bytes));
    }
    bytes *= size;
  }
  return bytes;
}

}  // namespace

MatArray read_mat_variable(const std::filesystem::path& path, std::string_view variable) {
  const std::string what = fmt::format("variable '{}' of '{}'", variable, path.string());
  const std::unique_ptr<mat_t, CloseFile> file(Mat_Open(path.c_str(), MAT_ACC_RDONLY));
  if (!file) throw DataError(fmt::format("'{}' cannot be read as a MATLAB 5 file", path.string()));
  const std::unique_ptr<matvar_t, FreeVariable> found(
      Mat_VarReadInfo(file.get(), std::string(variable).c_str()));
  if (!found) throw DataError(fmt::format("{} does not exist, or the file is damaged", what));
  MatArray array;
  array.element = element_name(found->class_type);
  for (int i = 0; i < found->rank; ++i)
    array.dimensions.push_back(static_cast<std::int64_t>(found->dims[i]));
  const bool is_numeric = found->class_type >= MAT_C_DOUBLE && found->class_type <= MAT_C_UINT64;
  if (!is_numeric || found->isComplex != 0) {
    throw DataError(fmt::format("{} is {}{}, but a real numeric array was expected", what,
                                array.text(), found->isComplex != 0 ? ", complex" : ""));
  }
  const std::size_t bytes = bytes_of(*found, std::filesystem::file_size(path), what);
  if (Mat_VarReadDataAll(file.get(), found.get()) != 0 || found->data == nullptr ||
      found->nbytes != bytes) {
    throw DataError(fmt::format("{} ({}) is damaged: its data cannot be read", what, array.text()));
  }
  const auto* data = static_cast<const std::uint8_t*>(found->data);
  array.bytes.assign(data, data + bytes);
  return array;
}

}  // namespace kolo::train
