#include "train/strategies/gradient_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace kolo::train {
namespace {

constexpr std::string_view kTopK = "topk:";
constexpr std::size_t kNarrowBytes = 2;
constexpr std::size_t kBlock = 1024;  // elements that are converted at once

void multiply(std::span<float> values, float by) {
  for (float& value : values) value *= by;
}

double sum_of_squares(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < values.size(); ++i) sums[0] += double{values[i]} * double{values[i]};
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

}  // namespace

void set_format(GradientOptions& options, std::string_view text) {
  if (text == "none") options.format = GradientFormat::float32;
  if (text == "bfloat16") options.format = GradientFormat::bfloat16;
  if (text == "float16") options.format = GradientFormat::float16;
  if (text == format_text(options)) return;
  if (text.starts_with(kTopK)) {
    const std::string_view number = text.substr(kTopK.size());
    const char* const last = number.data() + number.size();
    const auto [end, code] = std::from_chars(number.data(), last, options.sent_part);
    options.format = GradientFormat::top_k;
    if (code == std::errc{} && end == last && options.sent_part > 0 && options.sent_part <= 1)
      return;
  }
  throw std::invalid_argument(fmt::format(
      "expected none, bfloat16, float16 or topk:R, where R is the fraction of the elements "
      "that is sent, above 0 and at most 1, such as topk:0.01; got '{}'",
      text));
}

std::string format_text(const GradientOptions& options) {
  switch (options.format) {
    case GradientFormat::float32:
      break;
    case GradientFormat::bfloat16:
      return "bfloat16";
    case GradientFormat::float16:
      return "float16";
    case GradientFormat::top_k:
      return fmt::format("{}{}", kTopK, options.sent_part);
  }
  return "none";
}

GradientUpdate::GradientUpdate(const GradientOptions& options)
    : format_(options.format), clip_norm_(options.clip_norm) {
  if (format_ == GradientFormat::bfloat16) type_ = ElementType::kBFloat16;
  if (format_ == GradientFormat::float16) {
    type_ = ElementType::kFloat16;
    statistics_.scale = kFirstScale;
  }
  if (!is_narrow()) return;
  narrow_ = narrow_kernel(type_);
  widen_ = widen_kernel(type_);
}

bool GradientUpdate::is_narrow() const { return type_ != ElementType::kFloat32; }

std::size_t GradientUpdate::element_bytes() const {
  return is_narrow() ? kNarrowBytes : sizeof(float);
}

// From the front: a block is read before narrow values reach it.
Buffer GradientUpdate::encode(std::span<float> gradients) const {
  if (!is_narrow()) return gradients;
  const auto scale = static_cast<float>(statistics_.scale);
  auto* const bytes = reinterpret_cast<std::byte*>(gradients.data());
  std::array<std::uint16_t, kBlock> block;
  for (std::size_t begin = 0; begin < gradients.size(); begin += kBlock) {
    const std::span<float> values =
        gradients.subspan(begin).first(std::min(kBlock, gradients.size() - begin));
    if (statistics_.scale > 0) multiply(values, scale);
    narrow_(block.data(), values.data(), values.size());
    std::memcpy(bytes + begin * kNarrowBytes, block.data(), values.size() * kNarrowBytes);
  }
  return {bytes, gradients.size(), type_};
}

// From the back: a block's narrow values are read before float32 values reach them.
void GradientUpdate::decode(std::span<float> gradients) const {
  if (!is_narrow()) return;
  const auto inverse = statistics_.scale > 0 ? static_cast<float>(1 / statistics_.scale) : 1.0F;
  const auto* const bytes = reinterpret_cast<const std::byte*>(gradients.data());
  std::array<std::uint16_t, kBlock> block;
  for (std::size_t end = gradients.size(); end > 0;) {
    const std::size_t begin = (end - 1) / kBlock * kBlock;
    const std::span<float> values = gradients.subspan(begin, end - begin);
    std::memcpy(block.data(), bytes + begin * kNarrowBytes, values.size() * kNarrowBytes);
    widen_(values.data(), block.data(), values.size());
    if (statistics_.scale > 0) multiply(values, inverse);
    end = begin;
  }
}

bool GradientUpdate::needs_all_sums() const {
  return clip_norm_ > 0 || format_ == GradientFormat::float16;
}

bool GradientUpdate::prepare(std::span<const std::span<float>> sums,
                             const std::function<double(double)>& total) {
  double squares = 0;
  for (const std::span<float> one : sums) squares += sum_of_squares(one);
  const auto start = std::chrono::steady_clock::now();
  const double norm = std::sqrt(total(squares));
  statistics_.waiting +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!std::isfinite(norm)) {
    note_overflow();
    return false;
  }
  if (format_ == GradientFormat::float16 && ++statistics_.since_change >= kGrowthInterval) {
    statistics_.scale *= 2;
    statistics_.since_change = 0;
  }
  if (clip_norm_ == 0 || norm <= clip_norm_) return true;
  // As torch.nn.utils.clip_grad_norm_ does.
  const auto factor = static_cast<float>(clip_norm_ / (norm + 1e-6));
  for (const std::span<float> one : sums) multiply(one, factor);
  ++statistics_.clipped;
  return true;
}

void GradientUpdate::restore(double scale, std::int64_t since_change, std::int64_t skipped) {
  skipped_before_ = skipped;
  if (format_ != GradientFormat::float16 || scale == 0) return;
  statistics_.scale = scale;
  statistics_.since_change = since_change;
}

void GradientUpdate::note_overflow() {
  if (format_ != GradientFormat::float16 || statistics_.scale <= kLeastScale) {
    throw std::runtime_error(
        format_ == GradientFormat::float16
            ? fmt::format("the summed gradients overflow float16 with the loss scale {:g}, which "
                          "was halved {} times; training has diverged; lower --lr, or take "
                          "--compress bfloat16",
                          statistics_.scale, skipped_of_training())
            : "the summed gradients are not finite, training has diverged; lower --lr, or raise "
              "--warmup-epochs");
  }
  statistics_.scale /= 2;
  statistics_.since_change = 0;
  ++statistics_.skipped;
}

}  // namespace kolo::train
