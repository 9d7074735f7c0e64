#include "transports/base/suggestion.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace kolo::inline v0 {
namespace {

// Edit distance in which two swapped neighbours are one edit (optimal string alignment).
std::size_t edits_between(std::string_view one, std::string_view other) {
  using Row = std::vector<std::size_t>;
  Row edits(other.size() +
            1);  // [j]: from the letters of `one` read so far to the first j of `other`
  std::iota(edits.begin(), edits.end(), std::size_t{0});
  Row last, before_last;  // the same, one and two letters of `one` ago
  for (std::size_t i = 1; i <= one.size(); ++i) {
    before_last = std::exchange(last, edits);
    edits[0] = i;
    for (std::size_t j = 1; j < edits.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      edits[j] = std::min({replaced, last[j] + 1, edits[j - 1] + 1});
      const bool are_swapped =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (are_swapped) edits[j] = std::min(edits[j], before_last[j - 2] + 1);
    }
  }
  return edits.back();
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> known,
                         std::size_t same) {
  if (word.size() < same) return "";
  std::string_view found;
  std::size_t least = (word.size() - same) / 3 + 1;
  for (const std::string& candidate : known) {
    const std::size_t edits = edits_between(word, candidate);
    if (edits >= least) continue;
    least = edits;
    found = candidate;
  }
  return std::string(found);
}

std::string suggested_word(std::string_view word, std::span<const std::string> known,
                           Synonyms synonyms) {
  constexpr std::size_t kFewestLetters = 3;
  const auto is_known = [known](std::string_view one) {
    return std::ranges::find(known, one) != known.end();
  };
  for (const auto& [theirs, ours] : synonyms) {
    if (theirs == word && is_known(ours)) return std::string(ours);
  }
  const auto longer =
      std::ranges::find_if(known, [word](std::string_view one) { return one.starts_with(word); });
  const bool is_shortened = word.size() >= kFewestLetters && longer != known.end();
  return is_shortened ? *longer : nearest_word(word, known);
}

std::string did_you_mean(std::string_view word) {
  return word.empty() ? "" : std::string("; did you mean ").append(word).append("?");
}

}  // namespace kolo::inline v0
