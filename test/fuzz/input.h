// Common parts of all fuzzers: the entry point, and input bytes as values and choices.
//
// Every byte string is a valid input. Reading past its end gives zeros, so a target needs no
// special case for the end.
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

// Runs one input and returns 0. A violated requirement aborts the process.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kolo::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool is_empty() const { return rest_.empty(); }

  // At most `bytes` bytes.
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

  // A number from 0 to `end` - 1.
  unsigned below(unsigned end) { return number<std::uint8_t>() % end; }

  // A number from 0 to `end` + `rare` - 1, the last ones rarely. Choices added to a target this way
  // keep nearly all of its corpus valid.
  unsigned below_or_rare(unsigned end, unsigned rare) {
    constexpr unsigned kRare = 240;
    const unsigned byte = number<std::uint8_t>();
    return byte < kRare ? byte % end : end + byte % rare;
  }

  // Up to 255 bytes, preceded by their number.
  std::string short_text() { return std::string(take(number<std::uint8_t>())); }

 private:
  std::string_view rest_;
};

// Aborts unless the condition holds; it must hold for every input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the fuzzer found that this does not hold: %s\n", what);
  std::abort();
}

// The text truncated at `place`, or with the character there XORed with `change`.
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
