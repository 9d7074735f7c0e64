#pragma once

// Shape of a tensor: the sizes of its dimensions, outermost first. The shape of images is N, H, W,
// C, whatever their layout in memory.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace kolo::tensor {

// Up to four sizes, each at least 1. A plain value.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  // Throws std::invalid_argument for more than four dimensions or a size below 1.
  Shape(std::initializer_list<std::int64_t> sizes);

  int rank() const { return rank_; }
  // Size of dimension `i`; `i` must be below rank().
  std::int64_t operator[](int i) const { return sizes_[static_cast<std::size_t>(i)]; }
  // Number of elements: the product of all sizes, 1 for rank 0.
  std::int64_t count() const;
  // For messages: "64x8x8x256".
  std::string text() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

// Throws std::invalid_argument "WHAT: expected shape A, got B" unless both are equal.
void require_shape(const char* what, const Shape& expected, const Shape& actual);

}  // namespace kolo::tensor
