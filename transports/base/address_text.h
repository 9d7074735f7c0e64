// What ranks write their cards with, which the others read in the store: bytes in hex, and a sum
// that shows what was cut, changed or never a card.
#pragma once

#include <optional>
#include <sstream>
#include <string>

namespace kolo {

// Two digits a byte, small letters.
std::string to_hex(const std::string& bytes);

// Nothing where the text is not what to_hex() writes.
std::optional<std::string> from_hex(const std::string& text);

// To read a text from. Want of memory is thrown, and not taken for the text's end.
std::istringstream stream_of(const std::string& text);

// The text, and a line with a sum over it. Against accidents, not against who means it.
std::string with_checksum(std::string text);

}  // namespace kolo
