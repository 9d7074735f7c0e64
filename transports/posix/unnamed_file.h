// File that gets its name only when it is complete: a process killed while writing leaves no file
// behind.
//
// Uses O_TMPFILE. If the file system has none, or /proc is not mounted, the file has a temporary
// name beside its final one.
#pragma once

#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

class UnnamedFile {
 public:
  // Creates the file in the folder of `name`, readable for all. If it fails, is_open() is false and
  // errno is set. `can_be_unnamed` = false forces the temporary name (for tests).
  explicit UnnamedFile(const std::string& name, bool can_be_unnamed = true);
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile();

  bool is_open() const { return file_.is_open(); }
  int get() const { return file_.get(); }

  // Gives the file its name. Returns 0 or errno: EEXIST if the name is taken.
  int link(const std::string& name);

  // Same as link(), but replaces a file of that name.
  int replace(const std::string& name);

 private:
  Descriptor file_;
  std::string part_;  // temporary name, if any
};

}  // namespace kolo::inline v0::posix
