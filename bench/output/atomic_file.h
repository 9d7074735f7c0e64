// Atomic files: written as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace kolo::bench {

// Whether a regular file of that name exists and is not empty.
bool holds_something(const std::string& file);

// Makes a new, empty file beside `file`, with an unused name.
std::string scratch_beside(const std::string& file, std::string_view flag);

// Writes a temporary file and renames it, with the permissions of the file that it replaces. A link
// stays; its target is replaced. A device or a pipe is written directly. std::runtime_error names
// the flag of the file and the reason.
void write_whole(const std::string& file, std::string_view text, std::string_view flag);

}  // namespace kolo::bench
