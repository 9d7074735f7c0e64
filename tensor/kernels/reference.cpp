#include "tensor/kernels/reference/reference.h"

namespace kolo::tensor {

Layout Reference::image_layout(std::int64_t) const { return Layout::nhwc; }

WeightFormat Reference::weight_format(const Shape& oihw) const {
  return {static_cast<int>(oihw[0]), static_cast<int>(oihw[1])};
}

std::unique_ptr<Backend> make_reference(int) { return std::make_unique<Reference>(); }

}  // namespace kolo::tensor
