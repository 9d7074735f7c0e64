// Locks on single bytes of a file, which need not be there: those of fcntl that belong to an open
// file (F_OFD_SETLK), not to a process. The kernel drops them with the last descriptor of that open
// file, so when its process dies, and they work over NFS. Threads of a process that share the
// descriptor, and forked processes, are one and the same to the kernel.
#pragma once

#include <sys/types.h>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

// One attempt: false where another's keeps it away. Error kSystem where the file system has none.
bool lock_byte(const Descriptor& file, off_t byte);
bool lock_byte_shared(const Descriptor& file, off_t byte);
void unlock_byte(const Descriptor& file, off_t byte) noexcept;

// Whether anybody else has one that keeps lock_byte() away.
bool is_locked_by_others(const Descriptor& file, off_t byte);

// For as long as it lives, where is_held().
class ByteLock {
 public:
  ByteLock(const Descriptor& file, off_t byte)
      : file_(file), byte_(byte), is_held_(lock_byte(file, byte)) {}
  ~ByteLock() {
    if (is_held_) unlock_byte(file_, byte_);
  }
  ByteLock(const ByteLock&) = delete;
  ByteLock& operator=(const ByteLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  const Descriptor& file_;
  const off_t byte_;
  const bool is_held_;
};

}  // namespace kolo::posix
