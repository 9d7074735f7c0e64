// A file descriptor that closes itself.
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

// errno's text, and what to do where the limit on open files was met; thread-safe.
std::string error_text(int number);

// Error kSystem, "<what>: <errno's text>".
[[noreturn]] void throw_system(const std::string& what);

}  // namespace kolo::posix
