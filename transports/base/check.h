// Argument checks, also in release builds. They find bugs of the calling program, and cost a
// predictable branch.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kolo::inline v0 {

[[noreturn]] void fail_check(std::string_view message);

// std::invalid_argument with the message if `holds` is false.
inline void check(bool holds, std::string_view message) {
  if (!holds) [[unlikely]]
    fail_check(message);
}

// Checks the pieces of a segment of `bytes`: Channel::send_gathered, send_both.
inline void check_pieces(std::span<const std::byte> head, std::size_t body, std::size_t bytes) {
  check(head.size() % 8 == 0, "the length of a segment's first piece is not a multiple of 8 bytes");
  check(head.size() + body <= bytes, "the pieces of a segment are longer than the segment");
}

}  // namespace kolo::inline v0
