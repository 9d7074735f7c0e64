// The digits 0 to 9 as strokes, in several designs.
//
// A design is ten SVG paths (M, L, C with absolute numbers) on a cell of 60 x 100 units, y
// downwards. A path is the centre line of the pen. The renderer chooses the pen's thickness and
// rotation.
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

// The strokes of `digit` (0..9) in `design`, with curves flattened. The span is valid as long as
// the program runs. Thread-safe. Throws std::invalid_argument for an unknown digit or design.
std::span<const Segment> glyph(int design, int digit);

}  // namespace kolo::train
