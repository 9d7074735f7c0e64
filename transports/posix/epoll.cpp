#include "transports/posix/epoll.h"

#include <cerrno>

namespace kolo::inline v0::posix {

Epoll::Epoll() : descriptor_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!descriptor_.is_open()) throw_system("epoll_create1");
}

void Epoll::add(int descriptor, std::uint32_t events, std::uint64_t token) {
  control(EPOLL_CTL_ADD, descriptor, events, token);
}

void Epoll::change(int descriptor, std::uint32_t events, std::uint64_t token) {
  control(EPOLL_CTL_MOD, descriptor, events, token);
}

void Epoll::remove(int descriptor) noexcept {
  // Fails only if the descriptor is not in the set, which is the wanted state.
  [[maybe_unused]] const int done =
      ::epoll_ctl(descriptor_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

std::span<const epoll_event> Epoll::wait(std::span<epoll_event> into, int timeout_ms) {
  const int ready =
      ::epoll_wait(descriptor_.get(), into.data(), static_cast<int>(into.size()), timeout_ms);
  if (ready < 0 && errno != EINTR) throw_system("epoll_wait");
  return into.first(ready < 0 ? 0 : static_cast<std::size_t>(ready));
}

void Epoll::control(int operation, int descriptor, std::uint32_t events, std::uint64_t token) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (::epoll_ctl(descriptor_.get(), operation, descriptor, &event) != 0) throw_system("epoll_ctl");
}

}  // namespace kolo::inline v0::posix
