#include "tensor/kernels/onednn/onednn.h"
#include "tensor/kernels/onednn/parallel.h"

namespace kolo::tensor::onednn {

void Onednn::relu_forward(const Tensor& x, const Tensor& y) {
  parallel_ranges(threads_, x.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    loops_.relu(end - begin, x.data() + begin, y.data() + begin);
  });
}

void Onednn::relu_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  parallel_ranges(threads_, y.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    loops_.relu_gradient(end - begin, y.data() + begin, dy.data() + begin, dx.data() + begin);
  });
}

void Onednn::add_forward(const Tensor& a, const Tensor& b, bool has_relu, const Tensor& y) {
  const auto loop = has_relu ? loops_.add_relu : loops_.add;
  parallel_ranges(threads_, a.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    loop(end - begin, a.data() + begin, b.data() + begin, y.data() + begin);
  });
}

}  // namespace kolo::tensor::onednn
