// Error for memory that cannot be allocated: how much, and for what.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <string_view>

namespace kolo::bench {

class OutOfMemory : public std::bad_alloc {
 public:
  // Copies the text into a fixed array, as there may be no memory for a string.
  explicit OutOfMemory(std::string_view text) noexcept {
    text.copy(text_.data(), text_.size() - 1);
  }

  const char* what() const noexcept override { return text_.data(); }

 private:
  std::array<char, 400> text_{};
};

}  // namespace kolo::bench
