#include "transports/posix/hang_notice.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace kolo::posix {

HangNotice::HangNotice(std::string text, std::chrono::milliseconds limit)
    : text_(std::move(text) + "\n") {
  const auto until = std::chrono::steady_clock::now() + limit;
  // The program's signals are for its own threads.
  ::sigset_t all;
  ::sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this, until] { watch(until); });
  } catch (const std::system_error&) {
    // Not worth refusing what most likely comes back.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HangNotice::~HangNotice() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HangNotice::watch(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, until, [this] { return is_over_; })) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_.data(), text_.size());
  ::_exit(1);
}

}  // namespace kolo::posix
