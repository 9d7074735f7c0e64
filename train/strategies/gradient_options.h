// Gradient options: how gradients are sent and used. The same for every arm of a comparison.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kolo::train {

// The form in which gradients are sent. They are computed and applied in float32.
enum class GradientFormat : std::uint8_t {
  float32,
  bfloat16,
  float16,  // multiplied by a loss scale before the conversion, so that small values are kept
  top_k     // the largest elements of each bucket; the others are added to the next gradients
};

struct GradientOptions {
  GradientFormat format = GradientFormat::float32;
  double sent_part = 0.01;  // of top_k: the fraction of a bucket's elements that is sent, in (0, 1]
  double clip_norm = 0;     // largest Euclidean norm of all gradients together; 0: no limit
};

// Parses "none", "bfloat16", "float16" or "topk:0.01" into `options`. Throws std::invalid_argument
// with the valid forms.
void set_format(GradientOptions& options, std::string_view text);
// The text of set_format.
std::string format_text(const GradientOptions& options);

}  // namespace kolo::train
