// Pipe of which ranks inherit one end (LaunchRequest::descriptors).
#pragma once

namespace kolo::train {

class InheritedPipe {
 public:
  InheritedPipe();  // throws Error kSystem
  ~InheritedPipe();
  InheritedPipe(const InheritedPipe&) = delete;
  InheritedPipe& operator=(const InheritedPipe&) = delete;

  int reading_end() const { return ends_[0]; }
  int writing_end() const { return ends_[1]; }
  void close_writing_end();

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace kolo::train
