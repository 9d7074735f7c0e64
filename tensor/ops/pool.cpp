#include "tensor/ops/pool.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor {

namespace {

// The gradient goes to each window's maximum.
struct MaxPoolNode : Node {
  PoolShape pool;
  std::shared_ptr<std::byte> winners;
  Tensor outline;  // of x, whose memory is not needed
  Value x, y;

  void backward(Tape& tape) override {
    const Tensor dy = tape.take_gradient(*y);
    const Tensor dx(tape.pool(), outline.shape());
    tape.backend().max_pool_backward(pool, dy, reinterpret_cast<std::uint8_t*>(winners.get()), dx);
    x->gradients.push_back(dx);
  }
};

// Each of the H W inputs gets dy / (H W).
struct AveragePoolNode : Node {
  Value x, y;

  void backward(Tape& tape) override {
    const Tensor dy = tape.take_gradient(*y);
    const Tensor dx(tape.pool(), x->data.shape());
    tape.backend().average_pool_backward(dy, dx);
    x->gradients.push_back(dx);
  }
};

// Copies an image to rows in torch's order; with `is_back` from the rows to the image.
void copy_rows(const Tensor& image, const Tensor& rows, bool is_back) {
  const Shape& s = image.shape();
  float* row = rows.data();
  for (std::int64_t n = 0; n < s[0]; ++n) {
    for (std::int64_t c = 0; c < s[3]; ++c) {
      for (std::int64_t h = 0; h < s[1]; ++h) {
        for (std::int64_t w = 0; w < s[2]; ++w, ++row) {
          float& pixel = image.data()[((n * s[1] + h) * s[2] + w) * s[3] + c];
          (is_back ? pixel : *row) = is_back ? *row : pixel;
        }
      }
    }
  }
}

struct FlattenNode : Node {
  Value x, y;

  void backward(Tape& tape) override {
    const Tensor dy = tape.take_gradient(*y);
    const Tensor dx(tape.pool(), x->data.shape());
    copy_rows(dx, dy, true);
    x->gradients.push_back(dx);
  }
};

void require_image(const char* what, const Shape& shape) {
  if (shape.rank() == 4) return;
  throw std::invalid_argument(
      fmt::format("{}: the input must be N x H x W x C, got {}", what, shape.text()));
}

}  // namespace

Value max_pool2d(Tape& tape, const Value& x, std::int64_t kernel, std::int64_t stride,
                 std::int64_t padding) {
  const Shape& s = x->data.shape();
  require_image("max_pool2d", s);
  const std::int64_t room_h = s[1] + 2 * padding - kernel, room_w = s[2] + 2 * padding - kernel;
  if (kernel < 1 || kernel > 15 || stride < 1 || padding < 0 || 2 * padding > kernel ||
      room_h < 0 || room_w < 0) {
    throw std::invalid_argument(fmt::format(
        "max_pool2d: kernel {} (1 to 15), stride {} (at least 1) and padding {} (at most "
        "half the kernel) do not fit input {}",
        kernel, stride, padding, s.text()));
  }
  const Value y = tape.make({s[0], room_h / stride + 1, room_w / stride + 1, s[3]});
  if (tape.is_dry()) return y;
  auto node = std::make_unique<MaxPoolNode>();
  node->pool = {kernel, stride, padding};
  node->winners = tape.pool().take(static_cast<std::size_t>(y->data.count()));
  tape.backend().max_pool_forward(node->pool, x->data, y->data,
                                  reinterpret_cast<std::uint8_t*>(node->winners.get()));
  if (x->needs_gradient) {
    node->outline = Tensor::outline(s);
    node->x = x;
    node->y = y;
    tape.record(std::move(node), {"max_pool2d"});
  }
  return y;
}

Value global_average_pool(Tape& tape, const Value& x) {
  const Shape& s = x->data.shape();
  require_image("global_average_pool", s);
  const Value y = tape.make({s[0], s[3]});
  if (tape.is_dry()) return y;
  tape.backend().average_pool_forward(x->data, y->data);
  auto node = std::make_unique<AveragePoolNode>();
  node->x = x;
  node->y = y;
  tape.record(std::move(node), {"global_average_pool"});
  return y;
}

Value flatten(Tape& tape, const Value& x) {
  const Shape& s = x->data.shape();
  require_image("flatten", s);
  const Value y = tape.make({s[0], s[1] * s[2] * s[3]});
  if (tape.is_dry()) return y;
  copy_rows(x->data, y->data, false);
  auto node = std::make_unique<FlattenNode>();
  node->x = x;
  node->y = y;
  tape.record(std::move(node), {"flatten"});
  return y;
}

}  // namespace kolo::tensor
