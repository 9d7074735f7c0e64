// What somebody most likely meant who wrote a word that nobody knows.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kolo {

// The nearest of `known`, by letters put in, left out or replaced (Levenshtein's distance), where
// two thirds of the letters behind the first `same`, which all words begin with, are as they should
// be; else empty.
std::string nearest_word(std::string_view word, std::span<const std::string> known,
                         std::size_t same = 0);

}  // namespace kolo
