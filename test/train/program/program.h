// The program kolo-train as a test sees it: started, watched, its ranks found, its end awaited.
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
  std::string folder;                            // where it runs
  std::map<std::string, std::string> variables;  // beside those of the test
  std::string file = program_under_test();
  // In the new process, before the program begins; where it is not true, the exit code is 126.
  std::function<bool()> prepare = [] { return true; };
};

class Program {
 public:
  // Standard output and error become one text.
  explicit Program(const Start& start);
  Program(const std::vector<std::string>& arguments, const std::string& folder);
  // Kills it if it still runs.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads until the output has `text`; std::runtime_error with all output when it ends, or after
  // four minutes.
  void wait_for(const std::string& text);
  // Reads to the end; the exit code, or 128 + the signal. std::runtime_error after four minutes.
  int wait();
  const std::string& output() const { return output_; }

  pid_t process() const { return process_; }
  void signal(int number) const;
  // The process that is rank `rank`, by its environment; std::runtime_error where there is none.
  pid_t rank_process(int rank) const;
  // The same, once it is there; std::runtime_error after four minutes.
  pid_t wait_for_rank(int rank) const;
  // All processes that it started, and what those started, whoever their parents are by now: each
  // inherits a mark. Waits up to ten seconds for them to be gone, and returns those that are not.
  std::vector<pid_t> left_behind() const;

 private:
  bool read_some();
  std::vector<pid_t> marked() const;

  std::string mark_;  // a variable in the environment, and its value
  pid_t process_ = -1;
  int reading_ = -1;
  bool is_over_ = false;
  std::string output_;
  std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() +
      std::chrono::minutes(4);  // ctest gives five, and a sanitizer needs most of one
};

// Starts, waits, returns.
struct ProgramResult {
  int exit_code = 0;
  std::string output;
};
ProgramResult run_program(const Start& start);
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace kolo::test
