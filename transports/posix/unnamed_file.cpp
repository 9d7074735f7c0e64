#include "transports/posix/unnamed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace kolo::inline v0::posix {
namespace {

// mkstemp() gives access to the owner only. (umask cannot be read without changing it for the other
// threads.)
constexpr mode_t kPermissions = 0644;

std::string in_proc(int file) { return fmt::format("/proc/self/fd/{}", file); }

Descriptor without_name(const std::string& name) {
  const std::string folder = std::filesystem::path(name).parent_path();
  Descriptor file(::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC,
                         kPermissions));
  const bool can_be_named = file.is_open() && ::access(in_proc(file.get()).c_str(), F_OK) == 0;
  return can_be_named ? std::move(file) : Descriptor();
}

int made_as(std::string& part) { return ::mkostemp(part.data(), O_CLOEXEC); }

}  // namespace

UnnamedFile::UnnamedFile(const std::string& name, bool can_be_unnamed) {
  if (can_be_unnamed) file_ = without_name(name);
  if (!file_.is_open()) {
    std::string part = name + ".XXXXXX";
    file_ = Descriptor(made_as(part));
    if (!file_.is_open()) return;
    part_ = part;
  }
  ::fchmod(file_.get(), kPermissions);
}

UnnamedFile::~UnnamedFile() {
  if (!part_.empty()) ::unlink(part_.c_str());
}

int UnnamedFile::link(const std::string& name) {
  const std::string from = part_.empty() ? in_proc(file_.get()) : part_;
  const int flags = part_.empty() ? AT_SYMLINK_FOLLOW : 0;
  return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), flags) == 0 ? 0 : errno;
}

int UnnamedFile::replace(const std::string& name) {
  if (part_.empty()) {
    const int error = link(name);
    if (error != EEXIST) return error;
    // No system call replaces a named file by an unnamed one: use a second name for a moment.
    std::string part = name + ".XXXXXX";
    const Descriptor taken(made_as(part));
    if (!taken.is_open()) return errno;
    ::unlink(part.c_str());
    if (const int unnamed = link(part); unnamed != 0) return unnamed;
    part_ = part;
  }
  if (std::rename(part_.c_str(), name.c_str()) != 0) return errno;
  part_.clear();
  return 0;
}

}  // namespace kolo::inline v0::posix
