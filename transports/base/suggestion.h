// What somebody most likely meant who wrote a word that nobody knows.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kolo {

// The nearest of `known`, by letters put in, left out, replaced or swapped with the next one, where
// two thirds of the letters behind the first `same`, which all words begin with, are as they should
// be; else empty.
std::string nearest_word(std::string_view word, std::span<const std::string> known,
                         std::size_t same = 0);

// Another program's word, and the one of `known` that says it here.
using Synonym = std::pair<std::string_view, std::string_view>;
using Synonyms = std::span<const Synonym>;

// What a value was to be: what it is a synonym of, else the first of `known` that begins with it,
// if it has three letters or more, else the nearest; empty where there is none.
std::string suggested_word(std::string_view word, std::span<const std::string> known,
                           Synonyms synonyms = {});

// "; did you mean shm?", for the end of a refusal; nothing for an empty word.
std::string did_you_mean(std::string_view word);

}  // namespace kolo
