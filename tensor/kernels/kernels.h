#pragma once

// Backend: the interface between operations and the kernels that compute them.
//
// An operation (ops/) knows shapes and derivatives, and calls its backend to compute. A backend
// knows only memory, not the tape or the parameters. There is one object per network, so networks
// in one process share no state. One thread at a time makes calls. The backend distributes each
// call over its own threads, and returns when the result is complete. The same inputs on the same
// number of threads give the same bits.
//
// A new backend is a file NAME.cpp here with the function `std::unique_ptr<Backend> make_NAME(int
// threads, Precision precision)`, and one line in CMakeLists.txt.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/arena.h"
#include "tensor/tensor.h"

namespace kolo::tensor {

// The format of the inputs of convolutions and linear layers. Tensors, parameters and gradients are
// float32 in memory, products are summed in float32, and all other operations compute in float32.
enum class Precision : std::uint8_t {
  float32,
  bfloat16  // inputs are rounded to it; for processors with instructions for it
};
// "float32" or "bfloat16"; throws std::invalid_argument for anything else.
Precision precision_from(std::string_view name);

struct Conv2dShape {
  std::int64_t batch = 1, in_h = 1, in_w = 1, in = 1, out = 1;
  std::int64_t kernel = 1, stride = 1, padding = 0;

  std::int64_t out_h() const { return (in_h + 2 * padding - kernel) / stride + 1; }
  std::int64_t out_w() const { return (in_w + 2 * padding - kernel) / stride + 1; }
};

struct PoolShape {
  std::int64_t kernel = 1, stride = 1, padding = 0;
};

// y = (x - mean) * inverse_deviation * weight + bias (+ residual) (then ReLU).
struct BatchNormForward {
  const float* weight;
  const float* bias;
  Tensor residual;  // empty: none
  bool has_relu;
  float epsilon;
  float* mean;               // per channel: written in training, read in evaluation
  float* inverse_deviation;  // likewise
  float* variance;           // biased, written in training
};

struct BatchNormBackward {
  const float* weight;
  bool has_relu;
  const float* mean;
  const float* inverse_deviation;
  Tensor residual_gradient;  // output unless empty: the gradient at the input of the ReLU
  float* weight_gradient;
  float* bias_gradient;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual int threads() const = 0;
  // Prepares the calling thread for computing. Network calls it before each pass.
  virtual void enter() {}

  // x, y: N, H, W, C; weight: [kernel][kernel][in][out]; bias: [out], may be null.
  virtual void conv2d_forward(const Conv2dShape& shape, const Tensor& x, const float* weight,
                              const float* bias, const Tensor& y) = 0;
  virtual void conv2d_backward_data(const Conv2dShape& shape, const float* weight, const Tensor& dy,
                                    const Tensor& dx) = 0;
  // bias_gradient may be null.
  virtual void conv2d_backward_weight(const Conv2dShape& shape, const Tensor& x, const Tensor& dy,
                                      float* weight_gradient, float* bias_gradient) = 0;

  virtual void batch_norm_training(const Tensor& x, const BatchNormForward& how,
                                   const Tensor& y) = 0;
  virtual void batch_norm_evaluation(const Tensor& x, const BatchNormForward& how,
                                     const Tensor& y) = 0;
  // The gradient of y is the sum of `dys` (one or two). `dx` may be the same memory as one of
  // them.
  virtual void batch_norm_backward(const Tensor& x, const Tensor& y, std::span<const Tensor> dys,
                                   const BatchNormBackward& how, const Tensor& dx) = 0;

  // y may be x.
  virtual void relu_forward(const Tensor& x, const Tensor& y) = 0;
  // dx = dy where y > 0; dx may be dy.
  virtual void relu_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) = 0;
  // y = a + b, then ReLU if has_relu; y may be a or b.
  virtual void add_forward(const Tensor& a, const Tensor& b, bool has_relu, const Tensor& y) = 0;

  // `winners`: for each output, the position of its maximum in the window (row * kernel + column).
  virtual void max_pool_forward(const PoolShape& pool, const Tensor& x, const Tensor& y,
                                std::uint8_t* winners) = 0;
  virtual void max_pool_backward(const PoolShape& pool, const Tensor& dy,
                                 const std::uint8_t* winners, const Tensor& dx) = 0;
  // y: N, C.
  virtual void average_pool_forward(const Tensor& x, const Tensor& y) = 0;
  virtual void average_pool_backward(const Tensor& dy, const Tensor& dx) = 0;

  // weight: [out][in].
  virtual void linear_forward(const Tensor& x, const float* weight, const float* bias,
                              const Tensor& y) = 0;
  // dx may be empty: then it is not computed.
  virtual void linear_backward(const Tensor& x, const float* weight, const Tensor& dy,
                               float* weight_gradient, float* bias_gradient, const Tensor& dx) = 0;
};

// Names of the backends in this build, in order of preference: the fastest first.
std::vector<std::string> backend_names();
// Throws std::invalid_argument for an unknown name (the message lists the known ones), threads < 1,
// or a precision that the backend or this processor does not have.
std::unique_ptr<Backend> make_backend(std::string_view name, int threads,
                                      Precision precision = Precision::float32);

}  // namespace kolo::tensor
