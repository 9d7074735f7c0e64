// Standard output or error of the launcher, written without ever waiting for its reader.
//
// Lines that the reader does not take yet are kept. If many are kept, the launcher stops reading
// from the ranks, which then wait in their own writes. Meanwhile it still handles signals and ends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {

class Output {
 public:
  // `descriptor` is borrowed.
  explicit Output(int descriptor);

  // Writes whole lines, now or in a later flush(): a line of one rank never lands inside a line of
  // another.
  void add(std::string_view lines);
  void flush();

  bool has_kept() const { return !kept_.empty(); }
  bool is_full() const { return kept_.size() >= kMostKept; }

  // Writable when flush() can go on.
  int descriptor() const { return own_.is_open() ? own_.get() : borrowed_; }

  // The first error of writing (errno), after which lines are lost; 0: none. A closed reader
  // (EPIPE) is not an error.
  int error() const { return error_; }

 private:
  static constexpr std::size_t kMostKept = 1 << 20;

  // As write(2), but EAGAIN instead of waiting.
  ssize_t write_some(std::string_view text) const;

  const int borrowed_;
  posix::Descriptor own_;  // the same pipe or terminal, opened again without blocking
  std::string kept_;
  int error_ = 0;
};

}  // namespace kolo::inline v0::launch
