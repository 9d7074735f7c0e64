#include "transports/posix/thread.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "transports/error.h"
#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

namespace {

// Default stack size of a thread.
std::size_t stack_bytes() {
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return 0;
  std::size_t bytes = 0;
  ::pthread_attr_getstacksize(&attributes, &bytes);
  ::pthread_attr_destroy(&attributes);
  return bytes;
}

bool has_room(std::size_t bytes) {
  constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
  if (room == MAP_FAILED) return false;
  ::munmap(room, bytes);
  return true;
}

// ", or ulimit -v to more than 9000"; empty without a limit.
std::string limit_text(auto which, const char* option) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0) return "";
  if (limit.rlim_cur == RLIM_INFINITY) return "";
  return std::string(", or ulimit ") + option + " to more than " +
         std::to_string(limit.rlim_cur / 1024);
}

std::string no_room_text(std::size_t bytes) {
  return "there is no room for its stack of " + std::to_string(bytes / 1024) +
         " KiB: set ulimit -s to less" + limit_text(RLIMIT_AS, "-v") +
         limit_text(RLIMIT_DATA, "-d");
}

}  // namespace

std::thread start_thread(std::string_view whose, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    const std::size_t bytes = stack_bytes();
    throw Error(
        ErrorCode::kSystem, kNoPeer,
        "cannot start the thread of " + std::string(whose) + ": " +
            (has_room(bytes) ? process_error_text(error.code().value()) : no_room_text(bytes)));
  }
}

std::string process_error_text(int number) {
  std::string text = error_text(number);
  if (number != EAGAIN) return text;
  rlimit limit{};
  text += " (";
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text += "this user may have " + std::to_string(limit.rlim_cur) +
            " processes and threads: raise the limit with ulimit -u; or ";
  }
  return text + "see pids.max of its cgroup, which a container may set)";
}

void throw_no_process(const std::string& what) {
  throw Error(ErrorCode::kSystem, kNoPeer, what + ": " + process_error_text(errno));
}

}  // namespace kolo::inline v0::posix
