#include "transports/posix/whole_file.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "transports/error.h"
#include "transports/posix/descriptor.h"

namespace kolo::posix {
namespace {

// For all to read, as most files are; mkstemp's are the owner's alone. (The process's mask cannot
// be asked for without changing it for its other threads.)
constexpr mode_t kPermissions = 0644;

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string why_unwritable(const std::string& file) {
  std::string part = file + ".XXXXXX";
  const Descriptor made(::mkstemp(part.data()));
  if (made.get() < 0) return error_text(errno);
  ::unlink(part.c_str());
  return {};
}

void write_whole(const std::string& file, std::string_view text) {
  std::string part = file + ".XXXXXX";
  const Descriptor made(::mkstemp(part.data()));
  const bool is_written = made.get() >= 0 && write_all(made.get(), text);
  if (is_written) ::fchmod(made.get(), kPermissions);
  if (is_written && std::rename(part.c_str(), file.c_str()) == 0) return;
  const int error = errno;
  if (made.get() >= 0) ::unlink(part.c_str());
  throw Error(ErrorCode::kSystem, kNoPeer,
              fmt::format("cannot write {}: {}", file, error_text(error)));
}

}  // namespace kolo::posix
