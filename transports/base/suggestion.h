// "Did you mean ...?" suggestions for unknown names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kolo::inline v0 {

// The known word with the smallest edit distance: letters inserted, removed, replaced, or swapped
// with the next one. Empty if more than a third of the letters differ, not counting the first
// `same`, which are common to all words.
std::string nearest_word(std::string_view word, std::span<const std::string> known,
                         std::size_t same = 0);

// Another program's word, and the word of `known` with the same meaning.
using Synonym = std::pair<std::string_view, std::string_view>;
using Synonyms = std::span<const Synonym>;

// Suggestion for a value: the word that it is a synonym of; else the first of `known` that begins
// with it, if it has three letters or more; else the nearest one. Empty: none.
std::string suggested_word(std::string_view word, std::span<const std::string> known,
                           Synonyms synonyms = {});

// "; did you mean shm?", for the end of an error message; empty for an empty word.
std::string did_you_mean(std::string_view word);

}  // namespace kolo::inline v0
