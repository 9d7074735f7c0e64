#include "train/experiment/inherited_pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transports/error.h"

namespace kolo::train {

InheritedPipe::InheritedPipe() {
  if (pipe2(ends_, O_CLOEXEC) == 0) return;
  throw Error(ErrorCode::kSystem, kNoPeer, fmt::format("pipe: {}", std::strerror(errno)));
}

InheritedPipe::~InheritedPipe() {
  close_writing_end();
  close(ends_[0]);
}

void InheritedPipe::close_writing_end() {
  if (ends_[1] >= 0) close(ends_[1]);
  ends_[1] = -1;
}

}  // namespace kolo::train
