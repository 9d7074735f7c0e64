// What UCX prints of itself, as a text.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace kolo::ucx {

// `print` gets a stream. Empty where there is no memory for one.
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

}  // namespace kolo::ucx
