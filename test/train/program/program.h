// Runs the program kolo-train in a test: starts it, reads its output, finds its ranks, waits for
// its end. Reports have no plots, which take seconds.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace kolo::test {

// The path of kolo-train.
std::string program_under_test();

// How a program is started.
struct Start {
  std::vector<std::string> arguments;
  std::string folder;                            // working folder
  std::map<std::string, std::string> variables;  // in addition to those of the test
  std::string file = program_under_test();
  // Called in the new process before the program starts. If it returns false, the exit code is 126.
  std::function<bool()> prepare = [] { return true; };
};

class Program {
 public:
  // Standard output and standard error are read as one text.
  explicit Program(const Start& start);
  Program(const std::vector<std::string>& arguments, const std::string& folder);
  // Kills it if it still runs.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads until the output contains `text`. Throws std::runtime_error with the output if it ends,
  // or after four minutes.
  void wait_for(const std::string& text);
  // Reads to the end. Returns the exit code, or 128 + signal. Throws std::runtime_error after four
  // minutes.
  int wait();
  const std::string& output() const { return output_; }

  pid_t process() const { return process_; }
  void signal(int number) const;
  // The process of rank `rank`, found by its environment. Throws std::runtime_error if there is
  // none.
  pid_t rank_process(int rank) const;
  // Waits for the process of rank `rank`. Throws std::runtime_error after four minutes.
  pid_t wait_for_rank(int rank) const;
  // Waits up to ten seconds for all descendants of the program to end, and returns those that still
  // run. They are found by a mark in the inherited environment, whatever their parents are now.
  std::vector<pid_t> left_behind() const;

 private:
  bool read_some();
  std::vector<pid_t> marked() const;

  std::string mark_;  // environment variable and its value
  pid_t process_ = -1;
  int reading_ = -1;
  bool is_over_ = false;
  std::string output_;
  std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() +
      std::chrono::minutes(4);  // ctest's limit is five; under a sanitizer a run takes almost one
};

// Result of a program that has ended.
struct ProgramResult {
  int exit_code = 0;
  std::string output;
};
ProgramResult run_program(const Start& start);
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace kolo::test
