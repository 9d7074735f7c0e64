#pragma once

// A tensor is a handle: shape and a share in a block of memory that a pool lent.
//
// The pool exists because a training step asks for the same blocks again and again: fresh memory
// costs a page fault per 4 KiB, more than the arithmetic of a normalisation on it. Blocks return
// when the last tensor that holds them is gone, and are lent again, smallest sufficient first;
// nothing grows after the first step.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tensor/shape.h"

namespace kolo::tensor {

enum class Element : std::uint8_t { float32 };

/// Lends blocks of memory, 64-byte aligned. One thread at a time; blocks may outlive the pool.
class Pool {
 public:
  Pool();
  /// At least `bytes` bytes, contents undefined; returned to the pool when the last owner lets go.
  std::shared_ptr<std::byte> take(std::size_t bytes);
  /// Bytes obtained from the system so far, lent or not: constant in a steady state.
  std::size_t bytes_held() const;
  /// Largest number of bytes that were lent at one time.
  std::size_t bytes_peak() const;

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

/// A plain value; copies share the memory. An empty tensor (default) has no memory.
class Tensor {
 public:
  Tensor() = default;
  /// Memory from the pool, contents undefined.
  Tensor(Pool& pool, const Shape& shape);
  /// A view of memory that the caller keeps alive.
  static Tensor borrow(float* data, const Shape& shape);
  /// Shape only: for dry runs. data() is null.
  static Tensor outline(const Shape& shape);

  const Shape& shape() const { return shape_; }
  Element element() const { return Element::float32; }
  std::int64_t count() const { return shape_.count(); }
  float* data() const { return data_; }
  bool is_empty() const { return data_ == nullptr; }
  /// True where nobody else holds this memory: it may be written over.
  bool is_sole_owner() const { return memory_.use_count() == 1; }

 private:
  Shape shape_;
  std::shared_ptr<std::byte> memory_;
  float* data_ = nullptr;
};

}  // namespace kolo::tensor
