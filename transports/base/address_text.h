// Text format of endpoint addresses in the store: bytes in hex, and a checksum that detects
// truncated, changed or foreign texts.
#pragma once

#include <optional>
#include <sstream>
#include <string>

namespace kolo::inline v0 {

// Two digits per byte, lower case.
std::string to_hex(const std::string& bytes);

// Empty if the text is not a result of to_hex().
std::optional<std::string> from_hex(const std::string& text);

// A stream to parse a text. Lack of memory throws, instead of looking like the end of the text.
std::istringstream stream_of(const std::string& text);

// The text, and a line with its checksum. It detects accidents, not attacks.
std::string with_checksum(std::string text);

}  // namespace kolo::inline v0
