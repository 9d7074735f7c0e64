// A file that is written whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace kolo::posix {

// Why no file can be made beside `file`; empty where one can.
std::string why_unwritable(const std::string& file);

// Without a name first, then in place of what has that name. Error kSystem names the file and says
// why not; nothing is left behind then.
void write_whole(const std::string& file, std::string_view text);

}  // namespace kolo::posix
