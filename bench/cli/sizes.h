// Sizes as users write them: 8, 32K, 256MiB (powers of 1024), and sweeps over sizes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::bench {

// K, M and G mean KiB, MiB and GiB. std::invalid_argument, quoting the text, for texts that are
// not a size and for KB, MB and GB.
std::size_t parse_bytes(std::string_view text);

// The same in powers of 1000, as guides and vendors write sizes: K or KB is 10^3 bytes, M or MB
// 10^6, G or GB 10^9. KiB, MiB and GiB are refused.
std::size_t parse_decimal_bytes(std::string_view text);

// "64 KB", "1 MB", "1500 KB", "1001 B": exact, in powers of 1000.
std::string format_decimal_bytes(std::size_t bytes);

// "8 B", "32 KiB", "1.5 MiB"; "32.0 KiB" for a size that is not exactly 32 KiB.
std::string format_bytes(std::size_t bytes);

// "1 rank", "2 ranks".
std::string format_count(std::size_t count, std::string_view one);

// The largest multiple of `granule` up to `bytes`, but at least one granule; 0 for 0.
std::size_t whole(std::size_t bytes, std::size_t granule);

// min, min * factor, ..., and max as the last; after 0 comes `granule`. std::invalid_argument if
// min exceeds max, or factor is less than 2.
std::vector<std::size_t> steps(std::size_t min, std::size_t max, std::size_t factor,
                               std::size_t granule);

// The same steps, rounded by `whole`, without duplicates.
std::vector<std::size_t> sweep(std::size_t min, std::size_t max, std::size_t factor,
                               std::size_t granule);

}  // namespace kolo::bench
