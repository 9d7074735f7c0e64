#include "transports/posix/event.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <cstdint>

namespace kolo::inline v0::posix {

Event::Event() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!descriptor_.is_open()) throw_system("eventfd");
}

void Event::ring() noexcept {
  const std::uint64_t one = 1;
  // Fails only if the counter is full; then the descriptor is readable anyway.
  [[maybe_unused]] const auto written = ::write(descriptor_.get(), &one, sizeof one);
}

void Event::silence() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor_.get(), &count, sizeof count);
}

}  // namespace kolo::inline v0::posix
