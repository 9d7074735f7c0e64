// A shared library, loaded to stay.
#pragma once

#include <string>

namespace kolo::posix {

// The address of `symbol` in the library at `path`, which stays loaded until the process ends; null
// where it has no such symbol. std::invalid_argument, with the reason, where `path` is no file that
// can be loaded: the loader would wait for ever on a pipe.
void* symbol_of_library(const std::string& path, const char* symbol);

}  // namespace kolo::posix
