// Copy of a rank's output in whole lines, each with the rank's prefix.
#pragma once

#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::launch {

class PrefixedLines {
 public:
  // `from` is non-blocking; `to` is borrowed.
  PrefixedLines(posix::Descriptor from, int to, std::string prefix);
  ~PrefixedLines();
  PrefixedLines(PrefixedLines&& other) noexcept = default;
  PrefixedLines& operator=(PrefixedLines&& other) noexcept = default;

  int descriptor() const { return from_.get(); }
  bool is_open() const { return from_.is_open(); }

  // The first error of writing (errno), after which lines are lost; 0: none. A closed reader
  // (EPIPE) is not an error.
  int error() const { return error_; }

  // Copies the available output without waiting. At the end, a last line without a newline gets
  // one.
  void copy();

 private:
  void write_lines(bool is_last);

  posix::Descriptor from_;
  int to_;
  std::string prefix_;
  std::string pending_;
  int error_ = 0;
};

}  // namespace kolo::launch
