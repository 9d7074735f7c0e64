#include "transports/launch/environment_search.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};
constexpr int kLookEveryMs = 1;
constexpr std::size_t kDiffers = std::string::npos;

// /proc/PID/NAME; not open if the process is gone.
posix::Descriptor open_of(pid_t pid, std::string_view name) {
  std::array<char, 40> path{"/proc/"};
  char* end = path.data() + std::strlen(path.data());
  end = std::to_chars(end, path.data() + path.size(), pid).ptr;
  *end++ = '/';
  *std::ranges::copy(name, end).out = '\0';
  return posix::Descriptor(open(path.data(), O_RDONLY | O_CLOEXEC));
}

ssize_t read_some(int descriptor, std::array<char, 4096>& part) {
  ssize_t got = 0;
  while ((got = read(descriptor, part.data(), part.size())) < 0 && errno == EINTR) {
  }
  return got;
}

bool is_reaper(pid_t pid) {
  std::array<char, 4096> name{};
  const posix::Descriptor from = open_of(pid, "comm");
  const ssize_t got = from.is_open() ? read_some(from.get(), name) : 0;
  const std::string_view line(name.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return line.substr(0, line.find('\n')) == kReaperName;
}

}  // namespace

EnvironmentSearch::EnvironmentSearch(const std::vector<std::string>& entries) {
  for (const std::string& text : entries) entries_.push_back({.text = text});
}

// The kernel ends each variable with a null character.
void EnvironmentSearch::look_at(char next) {
  for (Entry& entry : entries_) {
    if (next == '\0') {
      entry.is_found = entry.is_found || entry.matched == entry.text.size();
      entry.matched = 0;
    } else if (entry.matched < entry.text.size() && entry.text[entry.matched] == next) {
      ++entry.matched;
    } else {
      entry.matched = kDiffers;
    }
  }
}

bool EnvironmentSearch::has_all(pid_t pid) {
  for (Entry& entry : entries_) {
    entry.matched = 0;
    entry.is_found = false;
  }
  const posix::Descriptor from = open_of(pid, "environ");
  ssize_t got = 0;
  while (from.is_open() && (got = read_some(from.get(), variables_)) > 0)
    std::for_each_n(variables_.data(), got, [this](char next) { look_at(next); });
  return !entries_.empty() && std::ranges::all_of(entries_, &Entry::is_found);
}

int EnvironmentSearch::kill_once() {
  const posix::Descriptor folder(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int found = 0;
  ssize_t bytes = 0;
  while (folder.is_open() &&
         (bytes = getdents64(folder.get(), processes_.data(), processes_.size())) > 0) {
    for (ssize_t at = 0; at < bytes;) {
      const auto* const one = reinterpret_cast<const dirent64*>(processes_.data() + at);
      at += one->d_reclen;
      const std::string_view name(one->d_name);
      pid_t pid = 0;
      const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (error != std::errc() || rest != name.data() + name.size() || !has_all(pid)) continue;
      // The descriptor stands for one process even if its number is given to another one.
      const posix::Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
      if (!process.is_open() || !has_all(pid) || is_reaper(pid)) continue;
      syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
      ++found;
    }
  }
  return found;
}

void EnvironmentSearch::kill_all() {
  const auto deadline = steady_clock::now() + kPatience;
  while (kill_once() > 0 && steady_clock::now() < deadline) poll(nullptr, 0, kLookEveryMs);
}

}  // namespace kolo::inline v0::launch
