// One rank: a process, its group, and the pipes that carry its output.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "transports/launch/reaper.h"
#include "transports/posix/descriptor.h"

namespace kolo::launch {

// How a process ended.
struct ExitStatus {
  bool by_signal = false;
  int value = 0;  // the exit code, or the signal

  bool is_success() const { return !by_signal && value == 0; }
  int exit_code() const { return by_signal ? 128 + value : value; }
  std::string text() const;  // "exited with code 3", "was killed by signal 9 (Killed)"
};

// The program could not be started; `error` is errno.
struct CannotStart {
  int error = 0;
};

struct RankProgram {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>>
      variables;                  // added to the launcher's environment
  bool has_plain_output = false;  // writes to the launcher's output itself
  std::vector<int> cores = {};    // that it is bound to; empty: to none
};

class RankProcess {
 public:
  // Starts it. Throws CannotStart, or Error kSystem where processes or descriptors run out,
  // or somebody stops the process before it has become the program.
  RankProcess(const RankProgram& program, const Reaper& guardian);
  ~RankProcess();  // ends the whole group, and reaps
  RankProcess(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool is_running() const { return is_running_; }
  const ExitStatus& ending() const { return ending_; }

  // Looks whether it has ended; true if that is news. It stays a zombie until the destructor, so
  // that no other process can get its number.
  bool look();

  // To the whole group, also after the process itself has ended.
  void signal_group(int signal) const;

  // Read ends, non-blocking, the caller's from now on; not open where the rank writes plain output.
  posix::Descriptor take_output() { return std::move(output_); }
  posix::Descriptor take_errors() { return std::move(errors_); }

 private:
  pid_t pid_ = -1;
  posix::Descriptor output_;
  posix::Descriptor errors_;
  bool is_running_ = true;
  ExitStatus ending_;
};

}  // namespace kolo::launch
