#include "transports/posix/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "transports/error.h"
#include "transports/posix/descriptor.h"
#include "transports/posix/unnamed_file.h"

namespace kolo::inline v0::posix {
namespace {

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
  const UnnamedFile trial(file);
  return trial.is_open() ? "" : error_text(errno);
}

void write_whole(const std::string& file, std::string_view text) {
  UnnamedFile part(file);
  int error = part.is_open() && write_all(part.get(), text) ? 0 : errno;
  if (error == 0) error = part.replace(file);
  if (error == 0) return;
  throw Error(ErrorCode::kSystem, kNoPeer,
              fmt::format("cannot write {}: {}", file, error_text(error)));
}

}  // namespace kolo::inline v0::posix
