// Atomic file write: the whole file or nothing.
#pragma once

#include <string>
#include <string_view>

namespace kolo::inline v0::posix {

// Why no file can be created in the folder of `file`; empty if one can.
std::string why_unwritable(const std::string& file);

// Writes an unnamed file, then puts it in place of `file`. Error kSystem names the file and the
// reason; then no file is left behind.
void write_whole(const std::string& file, std::string_view text);

}  // namespace kolo::inline v0::posix
