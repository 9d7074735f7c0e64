#include "transports/posix/byte_lock.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

#include "transports/error.h"

namespace kolo::inline v0::posix {

namespace {

struct flock exactly(off_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

bool set(const Descriptor& file, off_t byte, short type) {
  struct flock lock = exactly(byte, type);
  int result = 0;
  do {
    result = ::fcntl(file.get(), F_OFD_SETLK, &lock);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EAGAIN && errno != EACCES)
    throw_system("cannot lock a byte of a file");
  return result == 0;
}

}  // namespace

bool lock_byte(const Descriptor& file, off_t byte) { return set(file, byte, F_WRLCK); }

bool lock_byte_shared(const Descriptor& file, off_t byte) { return set(file, byte, F_RDLCK); }

void unlock_byte(const Descriptor& file, off_t byte) noexcept {
  struct flock lock = exactly(byte, F_UNLCK);
  ::fcntl(file.get(), F_OFD_SETLK, &lock);
}

bool is_locked_by_others(const Descriptor& file, off_t byte) {
  struct flock lock = exactly(byte, F_WRLCK);
  return ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace kolo::inline v0::posix
