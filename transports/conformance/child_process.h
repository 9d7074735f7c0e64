// A process that this one starts, watches and ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "transports/posix/descriptor.h"
#include "transports/transport.h"

namespace kolo::conformance {

class Child {
 public:
  enum class Output { kOurs, kRead };

  // Starts the command: a program's path and its arguments. With kRead its standard output is for
  // output(). Error kSystem where it cannot.
  explicit Child(std::vector<std::string> command, Output output = Output::kOurs);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // What it writes until it ends; false where it has not ended by the deadline.
  bool read_output(std::string& output, Deadline deadline);

  void kill() const;

  // Waits for its end: as waitpid gives it.
  int wait();

 private:
  pid_t pid_ = -1;
  posix::Descriptor output_;
  int status_ = -1;
};

// Has the kernel end this process when the one that started it ends.
void end_with_parent();

}  // namespace kolo::conformance
