#pragma once

// Reference backend, for comparison with the others: plain loops over plain NHWC memory, no
// dependency, one thread.
//
// Convolution weights are stored as [h][w][I][O], so the innermost loops access consecutive memory.

#include <vector>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor {

// The values that a convolution or a linear layer multiplies: as they are, or rounded to bfloat16.
class Operand {
 public:
  Operand(Precision precision, const float* values, std::int64_t count);
  const float* data() const { return rounded_.empty() ? values_ : rounded_.data(); }

 private:
  const float* values_;
  std::vector<float> rounded_;
};

class Reference : public Backend {
 public:
  explicit Reference(Precision precision) : precision_(precision) {}
  std::string_view name() const override { return "reference"; }
  int threads() const override { return 1; }

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
  Precision precision_;
};

}  // namespace kolo::tensor
