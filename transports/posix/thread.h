// Threads and processes that the system refuses: which limit it was, and what to do.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace kolo::posix {

// Error kSystem where the system refuses: names whose thread it is ("the store's server"), and
// what is short: room for its stack, or threads of this user.
std::thread start_thread(std::string_view whose, std::function<void()> body);

// errno's text, of a process or a thread that could not be started, with the limits that may be the
// reason.
std::string process_error_text(int number);

// Error kSystem for a fork() that has failed, with errno's.
[[noreturn]] void throw_no_process(const std::string& what);

}  // namespace kolo::posix
