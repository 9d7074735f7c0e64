#include "train/data/digits_scene.h"

#include <algorithm>
#include <cmath>

namespace kolo::train {
namespace {

// A colour from brightness and two colour differences (as in JPEG), which can be drawn
// independently.
Colour colour_of(float brightness, float blueness, float redness) {
  return {brightness + 1.402f * redness, brightness - 0.344f * blueness - 0.714f * redness,
          brightness + 1.772f * blueness};
}

Colour draw_tint(Random& random, float brightness) {
  const float vividness = random.uniform();
  const float spread = vividness < 0.55f ? 8.0f : vividness < 0.85f ? 20.0f : 38.0f;
  const float blueness = random.uniform(-spread, spread);
  return colour_of(brightness, blueness, random.uniform(-spread, spread));
}

// Draws the contrast in brightness between ink and wall. Its sign is chosen so that both stay in
// range.
void draw_colours(Random& random, Scene& scene) {
  const float wall = random.uniform(30, 225);
  const float low = random.chance(0.25f) ? 24.0f : 48.0f;
  const float contrast = random.uniform(low, 150);
  const bool brighter = wall + contrast > 245  ? false
                        : wall - contrast < 10 ? true
                                               : random.chance(0.5f);
  const float ink = std::clamp(brighter ? wall + contrast : wall - contrast, 5.0f, 250.0f);
  scene.wall_colour = draw_tint(random, wall);
  scene.ink_colour = draw_tint(random, ink);
  scene.edge_colour =
      draw_tint(random, std::clamp(2 * wall - ink + random.uniform(-40, 40), 5.0f, 250.0f));
}

void draw_frame(Random& random, Frame& frame) {
  const float height = random.uniform(20, 29);
  frame.scale = height / kGlyphHeight;
  frame.aspect = random.uniform(0.72f, 1.2f);
  frame.slant = random.chance(0.3f) ? random.uniform(-0.1f, 0.4f) : random.uniform(-0.08f, 0.08f);
  // Rotation by rational sine and cosine: the same on every platform, unlike sin() and cos().
  const float half =
      random.chance(0.2f) ? random.uniform(-0.17f, 0.17f) : random.uniform(-0.06f, 0.06f);
  frame.sine = 2 * half / (1 + half * half);
  frame.cosine = (1 - half * half) / (1 + half * half);
  frame.perspective_x = random.uniform(-0.16f, 0.16f);
  frame.perspective_y = random.uniform(-0.14f, 0.14f);
  frame.centre_x = 16 + random.uniform(-2, 2);
  frame.centre_y = 16 + random.uniform(-1.8f, 1.8f);
  frame.waist = random.uniform(-9, 9);
  frame.belly = random.uniform(-5, 5);
  frame.advance = kGlyphWidth + random.uniform(14, 40);
}

void draw_ink(Random& random, Scene& scene) {
  scene.pen = random.uniform(4.5f, 11.0f);
  scene.contrast = random.chance(0.4f) ? random.uniform(0.2f, 0.6f) : 0.0f;
  const float style = random.uniform();
  scene.ink = style < 0.76f ? Ink::filled : style < 0.92f ? Ink::outlined : Ink::hollow;
  if (scene.ink == Ink::hollow) scene.pen = std::max(scene.pen, 8.5f);
  scene.softness = random.uniform(0.8f, 1.6f);
  if (random.chance(0.35f)) scene.shadow = random.uniform(0.2f, 0.65f);
  scene.shadow_x = random.chance(0.5f) ? 1 : -1;
  scene.shadow_y = random.chance(0.7f) ? 1 : 2;
}

void draw_wall(Random& random, Scene& scene) {
  const float kind = random.uniform();
  scene.wall = kind < 0.5f    ? Wall::paint
               : kind < 0.6f  ? Wall::planks
               : kind < 0.68f ? Wall::boards
               : kind < 0.8f  ? Wall::bricks
                              : Wall::plaque;
  const float depth = random.uniform(0.15f, 0.5f) * (random.chance(0.7f) ? -1.0f : 1.0f);
  const auto joint = [depth](float value) { return std::clamp(value * (1 + depth), 0.0f, 255.0f); };
  scene.joint_colour = {joint(scene.wall_colour.red), joint(scene.wall_colour.green),
                        joint(scene.wall_colour.blue)};
  if (scene.wall == Wall::plaque) scene.joint_colour = draw_tint(random, random.uniform(20, 235));
  scene.joint_spacing = random.uniform(5.5f, 14);
  scene.joint_offset = random.uniform(0, 14);
  scene.mottle = random.uniform(0, 14);
}

void draw_camera(Random& random, Scene& scene) {
  scene.light_x = random.uniform(-0.25f, 0.25f);
  scene.light_y = random.uniform(-0.25f, 0.25f);
  scene.exposure = random.uniform(0.75f, 1.15f);
  scene.blur = random.uniform(0.05f, 0.25f);
  scene.blur_passes = static_cast<int>(random.below(5));
  scene.noise = random.uniform(0.5f, 9);
}

}  // namespace

Point Frame::to_pixels(Point glyph_point, int place) const {
  const float v = glyph_point.y / kGlyphHeight;
  const float bulge = 4 * v * (1 - v);
  float x = glyph_point.x - kGlyphWidth / 2 + static_cast<float>(place) * advance + belly * bulge;
  float y = glyph_point.y - kGlyphHeight / 2 + waist * bulge;
  x = x * aspect - slant * y;
  const float depth =
      std::max(0.4f, 1 + perspective_x * x / kGlyphHeight + perspective_y * y / kGlyphHeight);
  x = x * scale / depth;
  y = y * scale / depth;
  return {centre_x + cosine * x - sine * y, centre_y + sine * x + cosine * y};
}

Scene draw_scene(Random& random, int label) {
  Scene scene;
  scene.design = static_cast<int>(random.below(static_cast<std::uint32_t>(glyph_designs())));
  scene.digits[1] = label;
  if (random.chance(0.55f)) scene.digits[0] = static_cast<int>(random.below(10));
  if (random.chance(0.55f)) scene.digits[2] = static_cast<int>(random.below(10));
  draw_frame(random, scene.frame);
  draw_colours(random, scene);
  draw_ink(random, scene);
  draw_wall(random, scene);
  draw_camera(random, scene);
  return scene;
}

}  // namespace kolo::train
