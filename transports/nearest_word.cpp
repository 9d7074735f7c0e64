#include "transports/nearest_word.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace kolo {
namespace {

std::size_t edits_between(std::string_view one, std::string_view other) {
  std::vector<std::size_t> edits(other.size() + 1);  // from what was read of `one` to j of `other`
  std::iota(edits.begin(), edits.end(), std::size_t{0});
  for (const char letter : one) {
    std::size_t before = std::exchange(edits[0], edits[0] + 1);
    for (std::size_t j = 1; j < edits.size(); ++j) {
      const std::size_t replaced = before + (letter == other[j - 1] ? 0 : 1);
      before = std::exchange(edits[j], std::min({replaced, edits[j] + 1, edits[j - 1] + 1}));
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

}  // namespace kolo
