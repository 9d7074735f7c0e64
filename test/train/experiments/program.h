// The program kolo-train as a test sees it: started, watched, its ranks found, its end awaited.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace kolo::test {

class Program {
 public:
  // Starts it with these arguments, in `folder`; standard output and error become one text.
  Program(const std::vector<std::string>& arguments, const std::string& folder);
  // Kills it if it still runs.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads until the output has `text`; std::runtime_error with all output when it ends, or after a
  // minute.
  void wait_for(const std::string& text);
  // Reads to the end; the exit code, or 128 + the signal. std::runtime_error after a minute.
  int wait();
  const std::string& output() const { return output_; }

  void signal(int number) const;
  // The process that is rank `rank`, by its environment; std::runtime_error where there is none.
  pid_t rank_process(int rank) const;
  // Descendants that still live.
  std::vector<pid_t> descendants() const;

 private:
  bool read_some();

  pid_t process_ = -1;
  int reading_ = -1;
  bool is_over_ = false;
  std::string output_;
  std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);
};

// True once the process is gone or a zombie; waits up to ten seconds for it.
bool is_gone(pid_t process);

// Starts, waits, returns.
struct Ended {
  int exit_code = 0;
  std::string output;
};
Ended run_program(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace kolo::test
