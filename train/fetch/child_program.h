// Runs another program, such as curl, and waits for its end.
#pragma once

#include <string>
#include <vector>

namespace kolo::train {

inline constexpr int kProgramNotFound = 127;

struct ChildResult {
  int exit_code = 0;   // or 128 + signal; kProgramNotFound if there is no such program
  std::string output;  // its standard output
};

// What an interrupt (SIGINT, SIGQUIT) ends. With `child` the caller can clean up.
enum class Interrupt { child, both };

// Runs `words`, of which the first is looked up in PATH. Standard error is shared. If the caller
// dies, so does the child. Throws std::system_error if no process can be started.
ChildResult run_child(std::vector<std::string> words, Interrupt interrupt = Interrupt::child);

}  // namespace kolo::train
