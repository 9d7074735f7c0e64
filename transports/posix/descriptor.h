// File descriptor with ownership: the destructor closes it.
#pragma once

#include <string>
#include <utility>

namespace kolo::posix {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  void close() noexcept;

 private:
  int value_ = -1;
};

// Text of an errno, with the remedy if a limit on open files was hit. Thread-safe.
std::string error_text(int number);

// Throws Error kSystem, "<what>: <text of errno>".
[[noreturn]] void throw_system(const std::string& what);

}  // namespace kolo::posix
