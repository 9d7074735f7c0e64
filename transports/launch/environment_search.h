// Finds and kills processes by the environment that they were started with.
//
// For a child of fork(): after construction no call allocates memory. At the time of the fork
// another thread of the parent may have held the allocator's lock, and then the child can never
// take it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace kolo::inline v0::launch {

// The name (/proc/PID/comm) of reapers. kill_all() spares them: the reaper of another launcher,
// which this job started, has to kill the processes of its own job first.
constexpr const char* kReaperName = "kolo-reaper";

class EnvironmentSearch {
 public:
  // `entries`: "NAME=VALUE".
  explicit EnvironmentSearch(const std::vector<std::string>& entries);

  // Whether the process was started with all entries.
  bool has_all(pid_t pid);

  // Kills every process of the machine that was started with all entries, but no reaper. Looks
  // again until none is left, as a process may start another one before it ends; gives up after a
  // few seconds if one cannot be killed.
  void kill_all();

 private:
  struct Entry {
    std::string text;
    std::size_t matched = 0;  // characters of the current variable that are equal
    bool is_found = false;
  };

  void look_at(char next);
  // Kills each process that has all entries. Returns their number.
  int kill_once();

  std::vector<Entry> entries_;
  std::array<char, 4096> variables_{};               // a part of an environment
  alignas(8) std::array<char, 16'384> processes_{};  // a part of the folder /proc
};

}  // namespace kolo::inline v0::launch
