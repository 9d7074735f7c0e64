#include "transports/launch/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {
namespace {

struct Status {
  pid_t parent = 0;
  pid_t group = 0;
  bool is_alive = false;
};

std::string content_of(pid_t pid, const char* file) {
  const posix::Descriptor from(
      open(fmt::format("/proc/{}/{}", pid, file).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part{};
  ssize_t got = 0;
  while (from.is_open() && (got = read(from.get(), part.data(), part.size())) > 0)
    text.append(part.data(), static_cast<std::size_t>(got));
  return text;
}

// Of "PID (NAME) STATE PARENT GROUP ...". NAME may contain anything.
Status status_of(pid_t pid) {
  const std::string text = content_of(pid, "stat");
  const auto end = text.rfind(')');
  Status status;
  char state = 0;
  if (end == std::string::npos ||
      std::sscanf(text.c_str() + end + 1, " %c %d %d", &state, &status.parent, &status.group) != 3)
    return {};
  status.is_alive = state != 'Z' && state != 'X';
  return status;
}

std::vector<pid_t> all_processes() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  std::vector<pid_t> all;
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && rest == name.data() + name.size()) all.push_back(pid);
  }
  return all;
}

// The descriptor stands for one process even if its number is given to another one. `still` is
// asked after it was opened.
void signal_one(pid_t pid, int signal, const std::function<bool()>& still) {
  const posix::Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.is_open() && still())
    syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

}  // namespace

std::vector<Descendant> descendants() {
  std::map<pid_t, Status> processes;
  for (const pid_t pid : all_processes()) processes[pid] = status_of(pid);
  const pid_t self = getpid();
  std::vector<Descendant> found;
  for (const auto& [pid, status] : processes) {
    pid_t child = pid;
    pid_t parent = status.parent;
    while (parent > 1 && parent != self) {
      child = parent;
      const auto above = processes.find(parent);
      parent = above == processes.end() ? 0 : above->second.parent;
    }
    if (parent == self && status.is_alive) found.push_back({pid, status.group, child});
  }
  return found;
}

void signal_descendants(int signal, const std::function<bool(const Descendant&)>& is_chosen) {
  std::set<pid_t> reached;
  bool is_new = true;
  while (is_new) {
    is_new = false;
    for (const Descendant& one : descendants()) {
      if (!is_chosen(one) || !reached.insert(one.pid).second) continue;
      is_new = signal == SIGKILL;
      signal_one(one.pid, signal, [&] { return status_of(one.pid).group == one.group; });
    }
  }
}

}  // namespace kolo::inline v0::launch
