// A file that is written whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace kolo::posix {

// Why no file can be made beside `file`; empty where one can.
std::string why_unwritable(const std::string& file);

// Under another name first, then renamed. Error kSystem names the file and says why not; nothing is
// left behind then.
void write_whole(const std::string& file, std::string_view text);

}  // namespace kolo::posix
