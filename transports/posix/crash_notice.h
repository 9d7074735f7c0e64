// What is said should a call into somebody else's code end the process.
//
// A library that crashes as it is loaded would take the program down without a word of which it
// was. While a CrashNotice lives, a crash of this thread (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT)
// writes its text to standard error, and then goes on as it would have: to the handler that there
// was, or to the end of the process. One at a time in a process: others wait for their turn.
#pragma once

#include <pthread.h>

#include <array>
#include <csignal>
#include <mutex>
#include <string>

namespace kolo::posix {

class CrashNotice {
 public:
  // "TEXT (signal 11)"
  explicit CrashNotice(std::string text);
  ~CrashNotice();
  CrashNotice(const CrashNotice&) = delete;
  CrashNotice& operator=(const CrashNotice&) = delete;

 private:
  static constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

  static void handle(int signal, ::siginfo_t* info, void* context);
  void say(int signal) const;
  void give_back(int signal) const;

  const std::string text_;
  const ::pthread_t thread_;
  std::unique_lock<std::mutex> turn_;
  std::array<struct ::sigaction, kCrashes.size()> before_{};
};

}  // namespace kolo::posix
