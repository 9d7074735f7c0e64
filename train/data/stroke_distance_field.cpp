#include "train/data/stroke_distance_field.h"

#include <algorithm>
#include <cmath>

namespace kolo::train {

void StrokeDistanceField::add(Segment segment, float half_width) {
  const auto [from, to] = segment;
  const float reach = half_width + kFarAway;
  const auto pixel = [](float coordinate) {
    return static_cast<int>(std::floor(std::clamp(coordinate, -1.0f, kSide + 1.0f)));
  };
  const int left = std::max(0, pixel(std::min(from.x, to.x) - reach));
  const int right = std::min(kSide - 1, pixel(std::max(from.x, to.x) + reach));
  const int top = std::max(0, pixel(std::min(from.y, to.y) - reach));
  const int bottom = std::min(kSide - 1, pixel(std::max(from.y, to.y) + reach));
  const float dx = to.x - from.x, dy = to.y - from.y;
  const float length_squared = dx * dx + dy * dy;
  const float inverse = length_squared > 0 ? 1.0f / length_squared : 0.0f;
  for (int y = top; y <= bottom; ++y) {
    const float py = static_cast<float>(y) + 0.5f - from.y;
    float* row = distance_.data() + y * kSide;
    for (int x = left; x <= right; ++x) {
      const float px = static_cast<float>(x) + 0.5f - from.x;
      const float along = std::clamp((px * dx + py * dy) * inverse, 0.0f, 1.0f);
      const float ex = px - along * dx, ey = py - along * dy;
      row[x] = std::min(row[x], std::sqrt(ex * ex + ey * ey) - half_width);
    }
  }
}

}  // namespace kolo::train
