#include "transports/posix/library.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <cerrno>
#include <stdexcept>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

void* symbol_of_library(const std::string& path, const char* symbol) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) throw std::invalid_argument(error_text(errno));
  if (!S_ISREG(file.st_mode)) throw std::invalid_argument("it is not a file");
  // All symbols now: what is missing is said here, and not by a crash later.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    throw std::invalid_argument(reason == nullptr ? "the loader gave no reason" : reason);
  }
  return ::dlsym(library, symbol);
}

}  // namespace kolo::posix
