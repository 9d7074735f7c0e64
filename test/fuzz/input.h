// What all fuzzers share: the entry point, and bytes as answers to a target's questions.
//
// Every string of bytes is an input. Who asks for more than there is gets zeros, so that a target
// has no case of its own for the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

// Takes one input. 0; whatever is wrong ends the process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kolo::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool is_empty() const { return rest_.empty(); }

  // At most so many bytes.
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view take_all() { return take(rest_.size()); }

  template <typename T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  // From 0 to `end` - 1.
  unsigned below(unsigned end) { return number<std::uint8_t>() % end; }

  // From 0 to `end` + `rare` - 1, the last ones seldom: what has been added to a target's `end`
  // choices leaves its corpus as it was, nearly.
  unsigned below_or_rare(unsigned end, unsigned rare) {
    constexpr unsigned kRare = 240;
    const unsigned byte = number<std::uint8_t>();
    return byte < kRare ? byte % end : end + byte % rare;
  }

  // Up to 255 bytes, their number first.
  std::string short_text() { return std::string(take(number<std::uint8_t>())); }

 private:
  std::string_view rest_;
};

// What must hold for every input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the fuzzer found that this does not hold: %s\n", what);
  std::abort();
}

// The text, cut off at `place`, or with the letter there changed by these bits.
inline std::string torn(std::string text, std::size_t place, char change) {
  place %= text.size();
  if (change == 0) {
    text.resize(place);
  } else {
    text[place] = static_cast<char>(text[place] ^ change);
  }
  return text;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kolo::fuzz
