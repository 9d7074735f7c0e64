// Both ends of a non-blocking connection within one process.
#pragma once

#include <sys/socket.h>

#include "test/fuzz/input.h"
#include "transports/posix/descriptor.h"

namespace kolo::fuzz {

struct Ends {
  explicit Ends(int type = SOCK_STREAM) {
    int ends[2];
    require(::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
            "there are sockets");
    mine = posix::Descriptor(ends[0]);
    theirs = posix::Descriptor(ends[1]);
  }

  posix::Descriptor mine;
  posix::Descriptor theirs;
};

}  // namespace kolo::fuzz
