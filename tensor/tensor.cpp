#include "tensor/tensor.h"

#include <algorithm>
#include <utility>

#include "tensor/memory.h"

namespace kolo::tensor {

// Shared with every block in use, so that a block can be returned after the pool is destroyed.
struct Pool::Shelf {
  std::multimap<std::size_t, std::shared_ptr<std::byte>> free;
  std::size_t held = 0, lent = 0, peak = 0;
};

Pool::Pool() : shelf_(std::make_shared<Shelf>()) {}

std::shared_ptr<std::byte> Pool::take(std::size_t bytes) {
  bytes = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
  std::size_t size = bytes;
  std::shared_ptr<std::byte> block;
  // Do not use a block of more than twice the size: a larger tensor will need it.
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

Tensor::Tensor(Pool& pool, const Shape& shape) : Tensor(outline(shape)) {
  memory_ = pool.take(static_cast<std::size_t>(shape.count()) * sizeof(float));
  data_ = reinterpret_cast<float*>(memory_.get());
}

Tensor Tensor::borrow(float* data, const Shape& shape) {
  Tensor tensor = outline(shape);
  tensor.data_ = data;
  return tensor;
}

Tensor Tensor::outline(const Shape& shape) {
  Tensor tensor;
  tensor.shape_ = shape;
  return tensor;
}

}  // namespace kolo::tensor
