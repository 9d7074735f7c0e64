#pragma once

// The loops of the onednn backend except matrix multiplications. They run over rows of channels (in
// NHWC a pixel is a row). Compiled once per vector width from loops.inc; best_loops selects one.
//
// All loops are limited by memory bandwidth, so each does as much as possible while a row is in
// cache.

#include <cstdint>

namespace kolo::tensor::onednn {

// The size of every array that is not per channel: `rows` consecutive rows of `channels` floats.
struct Rows {
  std::int64_t rows, channels;
};

struct NormalizeArguments {
  const float* x;
  const float* residual;  // may be null
  const float* mean;      // per channel, as are scale and bias
  const float* scale;
  const float* bias;
  float* y;  // (x - mean) * scale + bias + residual, then optionally ReLU
};

struct NormSumsArguments {
  const float* x;
  const float* y;  // null: no ReLU
  const float* dy1;
  const float* dy2;  // may be null
  const float* mean;
  float* dz;       // (dy1 + dy2) where y > 0; may be dy1 or dy2
  float* sum;      // per channel, += dz
  float* product;  // per channel, += dz * (x - mean)
};

struct NormGradientArguments {
  const float* x;
  const float* dz;
  const float* mean;
  const float* scale;  // per channel, as are slope and offset
  const float* slope;
  const float* offset;
  float* dx;  // scale * dz + slope * (x - mean) + offset; may be dz
};

struct Loops {
  // sum += x - shift, square += (x - shift)^2, per channel.
  void (*moments)(Rows, const float* x, const float* shift, float* sum, float* square);
  void (*normalize)(Rows, const NormalizeArguments&);
  void (*normalize_relu)(Rows, const NormalizeArguments&);
  void (*norm_sums)(Rows, const NormSumsArguments&);
  void (*norm_gradient)(Rows, const NormGradientArguments&);
  // sum += x, per channel.
  void (*column_sums)(Rows, const float* x, float* sum);
  // y += row, for every row.
  void (*add_row)(Rows, const float* row, float* y);
  void (*relu)(std::int64_t count, const float* x, float* y);
  void (*relu_gradient)(std::int64_t count, const float* y, const float* dy, float* dx);
  void (*add)(std::int64_t count, const float* a, const float* b, float* y);
  void (*add_relu)(std::int64_t count, const float* a, const float* b, float* y);
  // Where x > y: y = x and winner = tap.
  void (*max_update)(std::int64_t count, const float* x, std::uint8_t tap, float* y,
                     std::uint8_t* winner);
  // dx += dy where winner == tap.
  void (*max_gradient)(std::int64_t count, const float* dy, const std::uint8_t* winner,
                       std::uint8_t tap, float* dx);
  // y = x as bfloat16: the upper half of a float, rounded to nearest, ties to even.
  void (*narrow)(std::int64_t count, const float* x, std::uint16_t* y);
};

const Loops& baseline_loops();
// The loops with the widest vectors that this processor supports.
const Loops& best_loops();

}  // namespace kolo::tensor::onednn
