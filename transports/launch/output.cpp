#include "transports/launch/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kolo::inline v0::launch {
namespace {

// If POLLOUT is reported, a pipe takes this much without waiting.
constexpr std::size_t kTakenAtOnce = 4096;

// Opens a pipe or a terminal again, since O_NONBLOCK on the descriptor itself would also change it
// for other processes. Not open for files, which never block, and where the system refuses.
posix::Descriptor open_again(int descriptor) {
  struct stat file {};
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(descriptor, &file) != 0) return {};
  if (!S_ISFIFO(file.st_mode) && !S_ISCHR(file.st_mode)) return {};
  return posix::Descriptor(open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                                O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

Output::Output(int descriptor) : borrowed_(descriptor), own_(open_again(descriptor)) {}

void Output::add(std::string_view lines) {
  kept_ += lines;
  flush();
}

void Output::flush() {
  std::size_t written = 0;
  while (written < kept_.size()) {
    const ssize_t wrote = write_some(std::string_view(kept_).substr(written));
    if (wrote > 0) {
      written += static_cast<std::size_t>(wrote);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      if (error_ == 0 && errno != EPIPE) error_ = errno;  // without a reader the ranks continue
      written = kept_.size();
    }
  }
  kept_.erase(0, written);
}

ssize_t Output::write_some(std::string_view text) const {
  if (own_.is_open()) return write(own_.get(), text.data(), text.size());
  pollfd waiting{borrowed_, POLLOUT, 0};
  if (poll(&waiting, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  const ssize_t sent = send(borrowed_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return write(borrowed_, text.data(), std::min(text.size(), kTakenAtOnce));
}

}  // namespace kolo::inline v0::launch
