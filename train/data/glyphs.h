// The digits 0 to 9 as strokes, in several designs of our own.
//
// A design is ten paths in the little language of SVG (M, L, C with absolute numbers) on a cell of
// 60 x 100 units, y downwards. A path is the line that a pen's centre follows; how thick the pen
// is, and how it is turned, is the renderer's choice.
#pragma once

#include <span>
#include <vector>

namespace kolo::train {

struct Point {
  float x = 0;
  float y = 0;
};

// A straight piece of a stroke.
struct Segment {
  Point from;
  Point to;
};

inline constexpr float kGlyphWidth = 60;
inline constexpr float kGlyphHeight = 100;

// Number of designs.
int glyph_designs();

// The strokes of `digit` (0..9) in `design`, curves flattened. The span lives as long as the
// program. Thread-safe. Throws std::invalid_argument when there is no such digit or design.
std::span<const Segment> glyph(int design, int digit);

}  // namespace kolo::train
