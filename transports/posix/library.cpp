#include "transports/posix/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

namespace {

std::string loader_reason() {
  const char* const reason = ::dlerror();
  return reason == nullptr ? "the loader gave no reason" : reason;
}

// Blocks signals for this thread during its lifetime, then restores all handlers. Some libraries
// install handlers when they are loaded (libpsm takes SIGINT and SIGTERM).
class SignalsAsTheyAre {
 public:
  SignalsAsTheyAre() {
    ::sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &mask_);
    for (int signal = 1; signal < kSignals; ++signal) ::sigaction(signal, nullptr, &at(signal));
  }
  SignalsAsTheyAre(const SignalsAsTheyAre&) = delete;
  SignalsAsTheyAre& operator=(const SignalsAsTheyAre&) = delete;
  ~SignalsAsTheyAre() {
    for (int signal = 1; signal < kSignals; ++signal) ::sigaction(signal, &at(signal), nullptr);
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  static constexpr int kSignals = 32;  // real-time signals have no default users

  struct ::sigaction& at(int signal) {
    return actions_.at(static_cast<std::size_t>(signal));
  }

  ::sigset_t mask_{};
  std::array<struct ::sigaction, kSignals> actions_{};
};

}  // namespace

void* symbol_of_library(const std::string& path, const char* symbol) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) throw std::invalid_argument(error_text(errno));
  if (!S_ISREG(file.st_mode)) throw std::invalid_argument("it is not a file");
  // RTLD_NOW: a missing symbol is reported here, not by a crash later.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::invalid_argument(loader_reason());
  return ::dlsym(library, symbol);
}

bool is_loaded(const std::string& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    ::dlerror();  // clear the error: "not loaded" is not a failure
    return false;
  }
  ::dlclose(library);  // drop the reference that RTLD_NOLOAD took
  return true;
}

InstalledLibrary::InstalledLibrary(std::string name) {
  const SignalsAsTheyAre signals;
  library_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library_ == nullptr) why_ = loader_reason();
}

void* InstalledLibrary::address(const char* symbol) const { return ::dlsym(library_, symbol); }

}  // namespace kolo::inline v0::posix
