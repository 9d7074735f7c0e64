// Scene: all random choices for one picture of `digits`, made before painting.
#pragma once

#include <array>

#include "train/data/glyphs.h"
#include "train/data/random.h"

namespace kolo::train {

// Red, green and blue, 0..255 (beyond that while light is being computed).
struct Colour {
  float red = 0;
  float green = 0;
  float blue = 0;
};

// Position of the number: maps a point of a glyph cell to pixels. All digits of a number share one
// frame, as on a wall.
struct Frame {
  float scale = 0.25f;  // pixels per glyph unit, downwards
  float aspect = 1;     // width against height
  float slant = 0;
  float sine = 0, cosine = 1;  // of the number's rotation
  float perspective_x = 0,
        perspective_y = 0;             // how much farther away per cell to the right, or down
  float centre_x = 16, centre_y = 16;  // pixel of the middle digit's centre
  float waist = 0, belly = 0;          // shift of the digits' middle, down and to the right
  float advance = 70;                  // glyph units from one digit's left edge to the next one's

  // `place` is 0 for the digit in the middle, -1 and +1 for its neighbours.
  Point to_pixels(Point glyph_point, int place) const;
};

enum class Ink { filled, outlined, hollow };
enum class Wall { paint, planks, boards, bricks, plaque };

struct Scene {
  int design = 0;
  std::array<int, 3> digits{-1, 0, -1};  // left neighbour, the label, right neighbour; -1: none
  Frame frame;
  float pen = 8;       // half a stroke's width in glyph units
  float contrast = 0;  // how much thinner horizontal strokes are than vertical ones: 0..0.6
  Ink ink = Ink::filled;
  Colour ink_colour, edge_colour;
  float softness = 1;  // width of an edge in pixels
  float shadow = 0;    // strength, 0..0.7
  int shadow_x = 1, shadow_y = 1;
  Wall wall = Wall::paint;
  Colour wall_colour, joint_colour;
  float joint_spacing = 8, joint_offset = 0;  // pixels
  float mottle = 0;                           // amplitude of the wall's coarse unevenness
  float light_x = 0,
        light_y = 0;  // change of brightness from the centre to an edge, as a fraction
  float exposure = 1;
  float blur = 0;  // weight of each neighbour in one smoothing pass, 0..0.25
  int blur_passes = 0;
  float noise = 0;  // standard deviation
};

// Draws a scene for this label (0..9). The number of draws taken from `random` varies.
Scene draw_scene(Random& random, int label);

}  // namespace kolo::train
