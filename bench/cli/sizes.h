// Sizes as people write them: 8, 32K, 256MiB (powers of 1024), and a row of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::bench {

// K, M and G are KiB, MiB and GiB. std::invalid_argument, quoting the text, where it is no size, or
// one in KB, MB or GB.
std::size_t parse_bytes(std::string_view text);

// "8 B", "32 KiB", "1.5 MiB"; "32.0 KiB" where it is not quite 32.
std::string format_bytes(std::size_t bytes);

// "1 rank", "2 ranks".
std::string format_count(std::size_t count, std::string_view one);

// The largest multiple of `granule` that is not more than `bytes`, but one of it at least; of 0, 0.
std::size_t whole(std::size_t bytes, std::size_t granule);

// min, min * factor, ... and at last max itself; behind 0 comes `granule`. std::invalid_argument
// where min exceeds max, or factor is less than 2.
std::vector<std::size_t> steps(std::size_t min, std::size_t max, std::size_t factor,
                               std::size_t granule);

// These steps as `whole` has them, each once.
std::vector<std::size_t> sweep(std::size_t min, std::size_t max, std::size_t factor,
                               std::size_t granule);

}  // namespace kolo::bench
