// Shared libraries that stay loaded until the process ends.
#pragma once

#include <string>

namespace kolo::inline v0::posix {

// Loads the library at `path` and returns the address of `symbol`; null if it has no such symbol.
// std::invalid_argument, with the reason, if `path` is not a regular file (the loader would block
// on a pipe) or cannot be loaded.
void* symbol_of_library(const std::string& path, const char* symbol);

// Whether a library of that name is loaded in this process. Loads nothing.
bool is_loaded(const std::string& name);

// System library by its soname ("libucp.so.0"), loaded at run time on first use.
//
// Programs that do not use the library neither need it nor pay for its start-up. Copies are cheap:
// all share one loaded library. Thread-safe.
class InstalledLibrary {
 public:
  // Loads the library. Signal handlers that its start-up installs are undone, and this thread
  // handles no signals meanwhile. If loading fails, why() gives the reason and no other member may
  // be called.
  explicit InstalledLibrary(std::string name);

  // Empty if the library is loaded; otherwise the loader's reason.
  const std::string& why() const { return why_; }

  // Sets `function` to the address of `symbol`. `Function` is the type that the library's header
  // declares. False, with a null pointer, if the library has no such symbol (it is older than its
  // header).
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

}  // namespace kolo::inline v0::posix
