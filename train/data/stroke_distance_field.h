// Signed distance field of strokes: the distance of each pixel of a small image to the edge.
//
// Negative inside, positive outside, in pixels, and at most kFarAway. The filled digit, its
// outline, its hollow form and its shadow are computed from this field, with edges of any softness.
// A segment updates only the pixels near it, about 100.
#pragma once

#include <array>
#include <cstddef>

#include "train/data/glyphs.h"

namespace kolo::train {

class StrokeDistanceField {
 public:
  static constexpr int kSide = 32;
  static constexpr float kFarAway = 3.0f;

  StrokeDistanceField() { distance_.fill(kFarAway); }

  // Adds a straight stroke with round ends; coordinates in pixels, (0, 0) is the corner of the
  // first pixel.
  void add(Segment segment, float half_width);

  // Signed distance at pixel (x, y); kFarAway outside the image.
  float at(int x, int y) const {
    if (x < 0 || y < 0 || x >= kSide || y >= kSide) return kFarAway;
    return distance_[static_cast<std::size_t>(y * kSide + x)];
  }

 private:
  std::array<float, kSide * kSide> distance_;
};

}  // namespace kolo::train
