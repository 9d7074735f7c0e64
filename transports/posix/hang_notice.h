// What is said should a call into somebody else's code never come back.
//
// A library whose constructor waits for ever leaves the thread that loads it no way out: the
// loader's lock is held, so nothing more can be loaded, and not even exit() would return. Loading
// it in a child first would run whatever its start does twice, and hang as well where another
// thread was loading something as the process was divided. So, as with a crash (crash_notice.h):
// its text goes to standard error, and the process ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace kolo::posix {

// While one lives a thread of its own watches: if that lasts longer than `limit`, it writes `text`
// and ends the process with exit code 1, without running destructors or exit handlers. Where no
// thread can be made nobody watches.
class HangNotice {
 public:
  HangNotice(std::string text, std::chrono::milliseconds limit);
  ~HangNotice();
  HangNotice(const HangNotice&) = delete;
  HangNotice& operator=(const HangNotice&) = delete;

 private:
  void watch(std::chrono::steady_clock::time_point until);

  const std::string text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace kolo::posix
