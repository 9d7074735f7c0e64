// Output of UCX's print functions as a string.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace kolo::inline v0::ucx {

// Calls `print` with a stream. Empty if there is no memory for the stream.
template <typename Print>
std::string text_printed_by(const Print& print) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* const stream = ::open_memstream(&text, &length);
  if (stream == nullptr) return {};
  print(stream);
  std::fclose(stream);
  std::string printed(text == nullptr ? "" : text, text == nullptr ? 0 : length);
  std::free(text);
  return printed;
}

}  // namespace kolo::inline v0::ucx
