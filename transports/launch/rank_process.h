// A rank's process, its process group, and the pipes of its output.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "transports/launch/reaper.h"
#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {

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
      variables;                      // added to the launcher's environment
  bool has_plain_output = false;      // writes directly to the launcher's output
  std::vector<int> cores = {};        // cores to bind it to; empty: no binding
  std::vector<int> descriptors = {};  // inherited, although closed on exec
  // Its standard input is a socket to the launcher. Signals, as bytes, are sent there instead of to
  // the process, except SIGKILL.
  bool has_lifeline = false;
};

class RankProcess {
 public:
  // Starts the process. Throws CannotStart. Error kSystem if there are no more processes or
  // descriptors, or if the process is stopped before it has started the program.
  RankProcess(const RankProgram& program, const Reaper& guardian);
  ~RankProcess();  // kills the whole group, and reaps it
  RankProcess(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool is_running() const { return is_running_; }
  const ExitStatus& ending() const { return ending_; }

  // Checks whether it has ended; true the first time. It stays a zombie until the destructor, so
  // that no other process can get its pid.
  bool look();

  // Signals the whole group, also after the process itself has ended.
  void signal_group(int signal);

  // Non-blocking read ends, moved to the caller. Not open if the rank has plain output.
  posix::Descriptor take_output() { return std::move(output_); }
  posix::Descriptor take_errors() { return std::move(errors_); }

 private:
  pid_t pid_ = -1;
  posix::Descriptor output_;
  posix::Descriptor errors_;
  posix::Descriptor lifeline_;
  bool is_running_ = true;
  ExitStatus ending_;
};

}  // namespace kolo::inline v0::launch
