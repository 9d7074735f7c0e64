// File descriptor with ownership: the destructor closes it.
//
// A child made by fork() has copies of all descriptors, also if it never calls exec, such as a
// worker process of a data loader. Its copy of a socket would hide this process's death from the
// peers, and its copy of a listener would keep the port. not_inherited() avoids that.
#pragma once

#include <string>
#include <utility>

namespace kolo::inline v0::posix {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  // In a child made by fork(), the number stands for an unused eventfd: destructors there close no
  // descriptor of another owner.
  static Descriptor not_inherited(int value);

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

}  // namespace kolo::inline v0::posix
