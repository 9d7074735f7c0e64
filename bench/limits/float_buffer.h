// A rank's floats in a floor, in the same kind of pages as the libraries' buffers (buffer.h).
#pragma once

#include <cstddef>

#include "bench/measure/buffer.h"

namespace kolo::bench {

class FloatBuffer {
 public:
  FloatBuffer() = default;
  FloatBuffer(std::size_t count, Pages pages)
      : buffer_(count * sizeof(float), pages), count_(count) {}

  float* data() { return reinterpret_cast<float*>(buffer_.data()); }
  const float* data() const { return reinterpret_cast<const float*>(buffer_.data()); }
  float* begin() { return data(); }
  float* end() { return data() + count_; }
  const float* begin() const { return data(); }
  const float* end() const { return data() + count_; }
  float operator[](std::size_t i) const { return data()[i]; }

 private:
  Buffer buffer_;
  std::size_t count_ = 0;
};

}  // namespace kolo::bench
