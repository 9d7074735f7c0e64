// Locks on single bytes of a file, by fcntl's open file description locks (F_OFD_SETLK).
//
// The byte may lie beyond the end of the file. A lock belongs to the open file, not to the process:
// the kernel drops it when the last descriptor of that open file closes, so also when the process
// dies. Such locks work over NFS. Threads that share the descriptor, and forked processes, count as
// one owner.
#pragma once

#include <sys/types.h>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

// One attempt; false while another owner's lock conflicts. Error kSystem if the file system has no
// locks.
bool lock_byte(const Descriptor& file, off_t byte);
bool lock_byte_shared(const Descriptor& file, off_t byte);
void unlock_byte(const Descriptor& file, off_t byte) noexcept;

// Whether another owner holds a lock that makes lock_byte() fail.
bool is_locked_by_others(const Descriptor& file, off_t byte);

// Holds lock_byte() for its lifetime, if is_held().
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

}  // namespace kolo::inline v0::posix
