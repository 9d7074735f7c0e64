#include "tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tensor/memory.h"

namespace kolo::tensor {

std::int64_t image_offset(const Shape& shape, Layout layout, std::int64_t n, std::int64_t h,
                          std::int64_t w, std::int64_t c) {
  const std::int64_t height = shape[1], width = shape[2], channels = shape[3];
  if (layout == Layout::nhwc) return ((n * height + h) * width + w) * channels + c;
  return (((n * (channels / 16) + c / 16) * height + h) * width + w) * 16 + c % 16;
}

/// Shared with every block that is out, so that a block can come home after the pool is gone.
struct Pool::Shelf {
  std::multimap<std::size_t, std::shared_ptr<std::byte>> free;
  std::size_t held = 0, lent = 0, peak = 0;
};

Pool::Pool() : shelf_(std::make_shared<Shelf>()) {}

std::shared_ptr<std::byte> Pool::take(std::size_t bytes) {
  bytes = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
  std::size_t size = bytes;
  std::shared_ptr<std::byte> block;
  // A block of more than twice the size stays for those who need it.
  const auto found = shelf_->free.lower_bound(bytes);
  if (found != shelf_->free.end() && found->first <= 2 * bytes) {
    size = found->first;
    block = std::move(found->second);
    shelf_->free.erase(found);
  } else {
    block = allocate_block(bytes);
    shelf_->held += bytes;
  }
  shelf_->lent += size;
  shelf_->peak = std::max(shelf_->peak, shelf_->lent);
  std::byte* const data = block.get();
  return {data, [shelf = shelf_, size, block = std::move(block)](std::byte*) mutable {
            shelf->lent -= size;
            shelf->free.emplace(size, std::move(block));
          }};
}

std::size_t Pool::bytes_held() const { return shelf_->held; }
std::size_t Pool::bytes_peak() const { return shelf_->peak; }

Tensor::Tensor(Pool& pool, const Shape& shape, Layout layout) : Tensor(outline(shape, layout)) {
  memory_ = pool.take(static_cast<std::size_t>(shape.count()) * sizeof(float));
  data_ = reinterpret_cast<float*>(memory_.get());
}

Tensor Tensor::borrow(float* data, const Shape& shape, Layout layout) {
  Tensor tensor = outline(shape, layout);
  tensor.data_ = data;
  return tensor;
}

Tensor Tensor::outline(const Shape& shape, Layout layout) {
  if (layout == Layout::blocked16 && (shape.rank() != 4 || shape[3] % 16 != 0)) {
    throw std::invalid_argument(
        fmt::format("shape {} cannot lie in blocks of 16 channels", shape.text()));
  }
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.layout_ = layout;
  return tensor;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.count() != shape_.count() || layout_ != Layout::nhwc) {
    throw std::invalid_argument(
        fmt::format("a tensor of shape {} cannot become {}", shape_.text(), shape.text()));
  }
  Tensor tensor = *this;
  tensor.shape_ = shape;
  return tensor;
}

}  // namespace kolo::tensor
