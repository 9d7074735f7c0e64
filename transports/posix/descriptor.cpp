#include "transports/posix/descriptor.h"

#include <sys/resource.h>
#include <unistd.h>
#include <cerrno>
#include <system_error>

#include "transports/error.h"

namespace kolo::posix {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    value_ = std::exchange(other.value_, -1);
  }
  return *this;
}

void Descriptor::close() noexcept {
  if (value_ >= 0) ::close(value_);
  value_ = -1;
}

std::string error_text(int number) {
  std::string text = std::generic_category().message(number);
  rlimit limit{};
  if (number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    text += " (this process may have " + std::to_string(limit.rlim_cur) +
            ": raise the limit with ulimit -n)";
  }
  if (number == EFBIG) text += " (see ulimit -f)";
  if (number == ENFILE) text += " (in the whole system: raise fs.file-max with sysctl)";
  return text;
}

void throw_system(const std::string& what) {
  throw Error(ErrorCode::kSystem, kNoPeer, what + ": " + error_text(errno));
}

}  // namespace kolo::posix
