// Paints a scene of `digits`: wall, shadow, ink, light, blur, noise, in the order of a photograph.
#pragma once

#include <cstdint>
#include <span>

#include "train/data/digits_scene.h"

namespace kolo::train {

// Writes 32 x 32 x 3 bytes. `random` is the source of the wall's unevenness and the camera's noise.
void paint(const Scene& scene, Random& random, std::span<std::uint8_t> pixels);

}  // namespace kolo::train
