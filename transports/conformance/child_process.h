// Child process: started, watched and ended by this one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "transports/posix/descriptor.h"
#include "transports/transport.h"

namespace kolo::inline v0::conformance {

class Child {
 public:
  enum class Output { kOurs, kRead };

  // Starts a command: the program's path and its arguments. With kRead, output() reads its standard
  // output. Error kSystem if it cannot be started.
  explicit Child(std::vector<std::string> command, Output output = Output::kOurs);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Reads its output until it ends; false if it has not ended by the deadline.
  bool read_output(std::string& output, Deadline deadline);

  void kill() const;

  // Waits for its end. Returns the status of waitpid.
  int wait();

 private:
  pid_t pid_ = -1;
  posix::Descriptor output_;
  int status_ = -1;
};

// Makes the kernel kill this process when its parent ends.
void end_with_parent();

}  // namespace kolo::inline v0::conformance
