// Thread start with errors that name the limit reached and the remedy. Also error texts for fork().
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace kolo::inline v0::posix {

// Error kSystem if the system refuses. The error names the thread ("the store's server") and the
// short resource: room for its stack, or threads of this user.
std::thread start_thread(std::string_view whose, std::function<void()> body);

// Text of an errno from starting a process or a thread, with the limits that may be the cause.
std::string process_error_text(int number);

// Throws Error kSystem for a failed fork(), with errno's text.
[[noreturn]] void throw_no_process(const std::string& what);

}  // namespace kolo::inline v0::posix
