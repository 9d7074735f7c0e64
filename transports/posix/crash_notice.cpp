#include "transports/posix/crash_notice.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <utility>

namespace kolo::posix {

namespace {

std::mutex& turns() {
  static std::mutex mutex;
  return mutex;
}

// Why the rule of no globals is broken: a signal's handler is told nothing else.
std::atomic<const CrashNotice*> current{nullptr};

}  // namespace

CrashNotice::CrashNotice(std::string text)
    : text_(std::move(text)), thread_(::pthread_self()), turn_(turns()) {
  current.store(this);
  struct ::sigaction ours {};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  for (std::size_t i = 0; i < kCrashes.size(); ++i) ::sigaction(kCrashes[i], &ours, &before_[i]);
}

// A library may have taken a signal for itself meanwhile: that is left alone.
CrashNotice::~CrashNotice() {
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    struct ::sigaction now {};
    ::sigaction(kCrashes[i], nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle)
      ::sigaction(kCrashes[i], &before_[i], nullptr);
  }
  current.store(nullptr);
}

// Of another thread's crash nothing is said: the notice is not about it. Whoever it was, the
// instruction is tried again, under the handler that there was; a signal that somebody sent is sent
// again.
void CrashNotice::handle(int signal, ::siginfo_t* info, void* /*context*/) {
  const CrashNotice* const notice = current.load();
  if (notice == nullptr) {
    std::signal(signal, SIG_DFL);
  } else {
    if (::pthread_equal(::pthread_self(), notice->thread_) != 0) notice->say(signal);
    notice->give_back(signal);
  }
  if (info->si_code <= 0) ::raise(signal);
}

// Nothing but what a signal's handler may call.
void CrashNotice::say(int signal) const {
  const std::array<char, 2> digits = {static_cast<char>('0' + signal / 10),
                                      static_cast<char>('0' + signal % 10)};
  const std::size_t leading = signal < 10 ? 1 : 0;
  const auto write = [](const char* bytes, std::size_t count) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, bytes, count);
  };
  write(text_.data(), text_.size());
  write(" (signal ", 9);
  write(digits.data() + leading, digits.size() - leading);
  write(")\n", 2);
}

void CrashNotice::give_back(int signal) const {
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i] == signal) ::sigaction(signal, &before_[i], nullptr);
  }
}

}  // namespace kolo::posix
