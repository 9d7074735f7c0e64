#pragma once

// Tensor: a handle with a shape and shared ownership of a block of pooled memory.
//
// The pool exists because each training step needs the same blocks again. New memory costs a page
// fault per 4 KiB, more than the arithmetic of a normalisation on it. A block returns to the pool
// with its last tensor. A request gets the smallest sufficient block. The pool does not grow after
// the first step.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tensor/shape.h"

namespace kolo::tensor {

enum class Element : std::uint8_t { float32 };

// Pool of memory blocks, 64-byte aligned. One thread at a time. Blocks may outlive the pool.
class Pool {
 public:
  Pool();
  // A block of at least `bytes` bytes, contents undefined. Returns to the pool with its last owner.
  std::shared_ptr<std::byte> take(std::size_t bytes);
  // Bytes obtained from the system so far, in use or not: constant in a steady state.
  std::size_t bytes_held() const;
  // Largest number of bytes that were in use at one time.
  std::size_t bytes_peak() const;

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

// A plain value; copies share the memory. An empty tensor (default) has no memory.
class Tensor {
 public:
  Tensor() = default;
  // Memory from the pool, contents undefined.
  Tensor(Pool& pool, const Shape& shape);
  // A view of memory that the caller keeps alive.
  static Tensor borrow(float* data, const Shape& shape);
  // Shape only: for dry runs. data() is null.
  static Tensor outline(const Shape& shape);

  const Shape& shape() const { return shape_; }
  Element element() const { return Element::float32; }
  std::int64_t count() const { return shape_.count(); }
  float* data() const { return data_; }
  bool is_empty() const { return data_ == nullptr; }
  // True if no other tensor shares this memory, so it may be overwritten.
  bool is_sole_owner() const { return memory_.use_count() == 1; }

 private:
  Shape shape_;
  std::shared_ptr<std::byte> memory_;
  float* data_ = nullptr;
};

}  // namespace kolo::tensor
