#include "train/data/digits_paint.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "train/data/stroke_distance_field.h"

namespace kolo::train {
namespace {

constexpr int kSide = StrokeDistanceField::kSide;
constexpr int kChannels = 3;
using Canvas = std::array<Colour, kSide * kSide>;

Colour& pixel(Canvas& canvas, int x, int y) {
  return canvas[static_cast<std::size_t>(y * kSide + x)];
}

void blend(Colour& below, const Colour& above, float weight) {
  below.red += weight * (above.red - below.red);
  below.green += weight * (above.green - below.green);
  below.blue += weight * (above.blue - below.blue);
}

void scale(Colour& colour, float factor) {
  colour.red *= factor;
  colour.green *= factor;
  colour.blue *= factor;
}

StrokeDistanceField strokes_of(const Scene& scene) {
  StrokeDistanceField field;
  for (int place = -1; place <= 1; ++place) {
    const int digit = scene.digits[static_cast<std::size_t>(place + 1)];
    if (digit < 0) continue;
    for (const Segment& segment : glyph(scene.design, digit)) {
      const float dx = segment.to.x - segment.from.x, dy = segment.to.y - segment.from.y;
      const float levelness = dx * dx / (dx * dx + dy * dy + 1e-6f);
      const float half_width = scene.pen * scene.frame.scale * (1 - scene.contrast * levelness);
      field.add(
          {scene.frame.to_pixels(segment.from, place), scene.frame.to_pixels(segment.to, place)},
          std::max(half_width, 0.45f));
    }
  }
  return field;
}

// Coverage of a grid line: 1 if `position` is on a multiple of `spacing`, 0 if it is more than a
// pixel away.
float line_at(float position, float spacing) {
  const float phase = position - spacing * std::floor(position / spacing);
  return std::clamp(1.2f - std::min(phase, spacing - phase), 0.0f, 1.0f);
}

float joint_weight(const Scene& scene, float x, float y) {
  const float spacing = scene.joint_spacing;
  switch (scene.wall) {
    case Wall::paint:
      return 0;
    case Wall::planks:
      return line_at(y + scene.joint_offset, spacing);
    case Wall::boards:
      return line_at(x + scene.joint_offset, spacing);
    case Wall::bricks: {
      const float course = std::floor((y + scene.joint_offset) / spacing);
      const bool odd = course - 2 * std::floor(course / 2) > 0.5f;
      const float along = x + scene.joint_offset + (odd ? spacing : 0.0f);
      return std::max(line_at(y + scene.joint_offset, spacing), line_at(along, 2 * spacing));
    }
    case Wall::plaque: {  // outside of the plaque: the colour of joints
      const float margin = 0.35f * scene.joint_offset - 1;
      const float inside =
          std::min({x - margin, kSide - margin - x, y - margin, kSide - margin - y});
      return std::clamp(0.5f - inside, 0.0f, 1.0f);
    }
  }
  return 0;
}

// Unevenness: random values on a coarse grid, bilinear in between.
class Mottle {
 public:
  Mottle(Random& random, float amplitude) {
    for (float& value : grid_) value = random.uniform(-amplitude, amplitude);
  }
  float at(int x, int y) const {
    const int column = x / kCell, row = y / kCell;
    const float s = static_cast<float>(x % kCell) / kCell,
                t = static_cast<float>(y % kCell) / kCell;
    const float upper = node(column, row) + s * (node(column + 1, row) - node(column, row));
    const float lower =
        node(column, row + 1) + s * (node(column + 1, row + 1) - node(column, row + 1));
    return upper + t * (lower - upper);
  }

 private:
  static constexpr int kCell = 6;
  static constexpr int kNodes = kSide / kCell + 2;
  float node(int column, int row) const {
    return grid_[static_cast<std::size_t>(row * kNodes + column)];
  }
  std::array<float, kNodes * kNodes> grid_;
};

void paint_wall(const Scene& scene, Random& random, Canvas& canvas) {
  const Mottle mottle(random, scene.mottle);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      Colour& here = pixel(canvas, x, y);
      here = scene.wall_colour;
      blend(here, scene.joint_colour,
            joint_weight(scene, static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f));
      const float offset = mottle.at(x, y);
      here.red += offset;
      here.green += offset;
      here.blue += offset;
    }
  }
}

void paint_ink(const Scene& scene, Canvas& canvas) {
  const StrokeDistanceField field = strokes_of(scene);
  // Coverage: 1 inside the strokes grown by `outwards` pixels, 0 outside, with a soft edge.
  const auto cover = [&](float distance, float outwards) {
    return std::clamp(0.5f - (distance - outwards) / scene.softness, 0.0f, 1.0f);
  };
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      Colour& here = pixel(canvas, x, y);
      const float distance = field.at(x, y);
      if (scene.shadow > 0) {
        const float shade = cover(field.at(x - scene.shadow_x, y - scene.shadow_y), 0);
        scale(here, 1 - scene.shadow * shade);
      }
      if (scene.ink == Ink::outlined) blend(here, scene.edge_colour, cover(distance, 1.0f));
      blend(here, scene.ink_colour, cover(distance, 0));
      if (scene.ink == Ink::hollow) blend(here, scene.wall_colour, cover(distance, -1.1f));
    }
  }
}

void light(const Scene& scene, Canvas& canvas) {
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const float across = (static_cast<float>(x) - 15.5f) / 16,
                  down = (static_cast<float>(y) - 15.5f) / 16;
      scale(pixel(canvas, x, y),
            scene.exposure * (1 + scene.light_x * across + scene.light_y * down));
    }
  }
}

// One smoothing pass along rows or columns, edges repeated.
void smooth(Canvas& canvas, float weight, bool along_rows) {
  for (int line = 0; line < kSide; ++line) {
    const auto at = [&](int i) -> Colour& {
      return along_rows ? pixel(canvas, i, line) : pixel(canvas, line, i);
    };
    Colour before = at(0);
    for (int i = 0; i < kSide; ++i) {
      const Colour here = at(i), after = at(std::min(i + 1, kSide - 1));
      const float rest = 1 - 2 * weight;
      at(i) = {rest * here.red + weight * (before.red + after.red),
               rest * here.green + weight * (before.green + after.green),
               rest * here.blue + weight * (before.blue + after.blue)};
      before = here;
    }
  }
}

// The sum of a word's four bytes is nearly normal, with mean 510 and deviation 147.8.
float noise(Random& random) {
  const std::uint32_t word = random.bits();
  const std::uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  return (static_cast<float>(sum) - 510.0f) * (1.0f / 147.8f);
}

}  // namespace

void paint(const Scene& scene, Random& random, std::span<std::uint8_t> pixels) {
  Canvas canvas;
  paint_wall(scene, random, canvas);
  paint_ink(scene, canvas);
  light(scene, canvas);
  for (int pass = 0; pass < scene.blur_passes; ++pass) {
    smooth(canvas, scene.blur, true);
    smooth(canvas, scene.blur, false);
  }
  const auto develop = [&](float value) {
    return static_cast<std::uint8_t>(std::clamp(value + scene.noise * noise(random), 0.0f, 255.0f));
  };
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    pixels[i * kChannels] = develop(canvas[i].red);
    pixels[i * kChannels + 1] = develop(canvas[i].green);
    pixels[i * kChannels + 2] = develop(canvas[i].blue);
  }
}

}  // namespace kolo::train
