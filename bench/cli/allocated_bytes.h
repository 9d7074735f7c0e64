// Number of bytes that the program holds allocated through operator new, which this program
// replaces.
#pragma once

#include <cstddef>

namespace kolo::bench {

std::size_t allocated_bytes();

}  // namespace kolo::bench
