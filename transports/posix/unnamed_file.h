// A file that gets its name once it is whole: who is killed while writing it leaves nothing behind.
// (O_TMPFILE; where the file system has none, or /proc is not mounted, under a name of its own
// beside the one that it is to have.)
#pragma once

#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

class UnnamedFile {
 public:
  // In the folder of `name`, for all to read. is_open() says whether it could be, errno why not.
  // `can_be_unnamed` false: as on a file system that knows no other files.
  explicit UnnamedFile(const std::string& name, bool can_be_unnamed = true);
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile();

  bool is_open() const { return file_.is_open(); }
  int get() const { return file_.get(); }

  // Gives it a name. Zero, or errno: EEXIST where there is such a file.
  int link(const std::string& name);

  // The same, in place of what has that name.
  int replace(const std::string& name);

 private:
  Descriptor file_;
  std::string part_;  // the name that it has meanwhile, if it has one
};

}  // namespace kolo::posix
