// Shared libraries, loaded to stay.
#pragma once

#include <string>

namespace kolo::posix {

// The address of `symbol` in the library at `path`, which stays loaded until the process ends; null
// where it has no such symbol. std::invalid_argument, with the reason, where `path` is no file that
// can be loaded: the loader would wait for ever on a pipe.
void* symbol_of_library(const std::string& path, const char* symbol);

// Whether the library of that name has been loaded into this process, by whomever; loads nothing.
bool is_loaded(const std::string& name);

// A library of the system, by the name that its programs record ("libucp.so.0"), loaded when it is
// first wanted and not when the program starts: who does not use it neither waits for it nor needs
// it. Copies are cheap; a loaded library stays until the process ends. From any thread.
class InstalledLibrary {
 public:
  // Loads it. The program's handling of signals is as before, whatever the library's own start
  // would make of it, and no signal is handled meanwhile by this thread. Where it cannot be loaded,
  // why() says so and nothing else may be asked.
  explicit InstalledLibrary(std::string name);

  // Empty where the library is loaded; otherwise the loader's reason.
  const std::string& why() const { return why_; }

  // Sets `function`, a pointer of the type of what the library's header declares, to `symbol`;
  // false, and null, where the library has no such (it is older than its header).
  template <typename Function>
  bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));
    return function != nullptr;
  }

 private:
  void* address(const char* symbol) const;

  void* library_ = nullptr;
  std::string why_;
};

}  // namespace kolo::posix
