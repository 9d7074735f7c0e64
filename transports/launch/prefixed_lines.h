// Copy of a rank's output in whole lines, each with the rank's prefix.
#pragma once

#include <string>

#include "transports/launch/output.h"
#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {

class PrefixedLines {
 public:
  // `from` is non-blocking; `to` is borrowed.
  PrefixedLines(posix::Descriptor from, Output& to, std::string prefix);
  ~PrefixedLines();
  PrefixedLines(PrefixedLines&& other) noexcept = default;
  PrefixedLines& operator=(PrefixedLines&& other) noexcept = default;

  int descriptor() const { return from_.get(); }
  bool is_open() const { return from_.is_open(); }
  bool can_copy() const { return is_open() && !to_->is_full(); }

  // Copies the available output without waiting, unless `to` is full. At the end, a last line
  // without a newline gets one.
  void copy();

 private:
  void write_lines(bool is_last);

  posix::Descriptor from_;
  Output* to_;
  std::string prefix_;
  std::string pending_;
};

}  // namespace kolo::inline v0::launch
