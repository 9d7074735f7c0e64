#include "transports/posix/descriptor.h"

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

std::string error_text(int number) { return std::generic_category().message(number); }

void throw_system(const std::string& what) {
  throw Error(ErrorCode::kSystem, kNoPeer, what + ": " + error_text(errno));
}

}  // namespace kolo::posix
