#include "tensor/shape.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kolo::tensor {

Shape::Shape(std::initializer_list<std::int64_t> sizes) {
  if (sizes.size() > static_cast<std::size_t>(kMaxRank)) {
    throw std::invalid_argument(
        fmt::format("a shape has at most {} dimensions, not {}", kMaxRank, sizes.size()));
  }
  for (const std::int64_t size : sizes) {
    if (size < 1) {
      throw std::invalid_argument(fmt::format("a dimension of size {} is not possible", size));
    }
    sizes_[static_cast<std::size_t>(rank_++)] = size;
  }
}

std::int64_t Shape::count() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= (*this)[i];
  return product;
}

std::string Shape::text() const {
  if (rank_ == 0) return "scalar";
  std::string text;
  for (int i = 0; i < rank_; ++i) text += fmt::format("{}{}", i == 0 ? "" : "x", (*this)[i]);
  return text;
}

void require_shape(const char* what, const Shape& expected, const Shape& actual) {
  if (expected == actual) return;
  throw std::invalid_argument(
      fmt::format("{}: expected shape {}, got {}", what, expected.text(), actual.text()));
}

}  // namespace kolo::tensor
