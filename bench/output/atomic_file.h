// Files that are written whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace kolo::bench {

// Whether there is a file of that name, with anything in it; not of a device, a pipe or a folder.
bool holds_something(const std::string& file);

// A new, empty file beside `file`, of a name that nobody has.
std::string scratch_beside(const std::string& file, std::string_view flag);

// Under another name first, then renamed; with the permissions of what was there. What a link leads
// to is replaced, not the link; a device or a pipe is written to. std::runtime_error says which
// flag named the file and why it cannot be.
void write_whole(const std::string& file, std::string_view text, std::string_view flag);

}  // namespace kolo::bench
