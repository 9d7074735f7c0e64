#pragma once

// Fast CPU backend: oneDNN's matrix multiplication and convolution, and our own loops for the rest.
// prefers_taps (taps.h) chooses the method of a convolution.

#include <array>
#include <vector>

#include "tensor/kernels/kernels.h"
#include "tensor/kernels/onednn/convolution.h"
#include "tensor/kernels/onednn/gemm.h"
#include "tensor/kernels/onednn/loops.h"

namespace kolo::tensor::onednn {

class Onednn : public Backend {
 public:
  Onednn(int threads, Precision precision);
  std::string_view name() const override { return "onednn"; }
  int threads() const override { return threads_; }
  void enter() override;

  void conv2d_forward(const Conv2dShape& shape, const Tensor& x, const float* weight,
                      const float* bias, const Tensor& y) override;
  void conv2d_backward_data(const Conv2dShape& shape, const float* weight, const Tensor& dy,
                            const Tensor& dx) override;
  void conv2d_backward_weight(const Conv2dShape& shape, const Tensor& x, const Tensor& dy,
                              float* weight_gradient, float* bias_gradient) override;

  void batch_norm_training(const Tensor& x, const BatchNormForward& how, const Tensor& y) override;
  void batch_norm_evaluation(const Tensor& x, const BatchNormForward& how,
                             const Tensor& y) override;
  void batch_norm_backward(const Tensor& x, const Tensor& y, std::span<const Tensor> dys,
                           const BatchNormBackward& how, const Tensor& dx) override;

  void relu_forward(const Tensor& x, const Tensor& y) override;
  void relu_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) override;
  void add_forward(const Tensor& a, const Tensor& b, bool has_relu, const Tensor& y) override;

  void max_pool_forward(const PoolShape& pool, const Tensor& x, const Tensor& y,
                        std::uint8_t* winners) override;
  void max_pool_backward(const PoolShape& pool, const Tensor& dy, const std::uint8_t* winners,
                         const Tensor& dx) override;
  void average_pool_forward(const Tensor& x, const Tensor& y) override;
  void average_pool_backward(const Tensor& dy, const Tensor& dx) override;

  void linear_forward(const Tensor& x, const float* weight, const float* bias,
                      const Tensor& y) override;
  void linear_backward(const Tensor& x, const float* weight, const Tensor& dy,
                       float* weight_gradient, float* bias_gradient, const Tensor& dx) override;

 private:
  // At least `count` floats, contents undefined, valid until the next call.
  float* scratch(std::int64_t count);
  // The values as convolutions and multiplications take them: the same memory, or rounded to
  // bfloat16 in memory of the backend, one for each `place`, 0 or 1, valid until its next use.
  const void* operand(std::int64_t count, const float* values, int place);
  // Computes y for all rows of x. Keeps the scales per channel in scratch memory.
  void normalize(const Tensor& x, const BatchNormForward& how, const Tensor& y);

  int threads_;
  const Loops& loops_;
  const Precision precision_;
  Convolutions convolutions_;
  Multiplications multiplications_;
  std::vector<float> scratch_;
  std::array<std::vector<std::uint16_t>, 2> narrow_;
};

}  // namespace kolo::tensor::onednn
