#include "bench/output/atomic_file.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace kolo::bench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(std::string_view flag, const std::string& file, const std::string& why) {
  throw std::runtime_error(fmt::format("{} {}: cannot write: {}", flag, file, why));
}

bool write(const std::string& file, std::string_view text) {
  std::ofstream stream(file, std::ios::trunc);
  stream << text;
  stream.flush();
  return stream.good();
}

// Sets the permissions of the replaced file, or of any new file.
void take_permissions(const std::string& part, const fs::path& place) {
  struct stat known {};
  if (stat(place.c_str(), &known) == 0) {
    chmod(part.c_str(), known.st_mode & 07777);
    return;
  }
  const mode_t mask = umask(0);
  umask(mask);
  chmod(part.c_str(), 0666 & ~mask);
}

}  // namespace

bool holds_something(const std::string& file) {
  std::error_code code;
  return fs::is_regular_file(file, code) && fs::file_size(file, code) > 0 && !code;
}

std::string scratch_beside(const std::string& file, std::string_view flag) {
  std::string part = file + ".XXXXXX";
  const int made = mkstemp(part.data());
  if (made < 0) refuse(flag, file, std::strerror(errno));
  close(made);
  return part;
}

void write_whole(const std::string& file, std::string_view text, std::string_view flag) {
  std::error_code code;
  fs::path place = file;
  if (fs::is_symlink(place, code)) place = fs::weakly_canonical(place, code);
  if (fs::exists(place, code) && !fs::is_regular_file(place, code)) {  // a device, a pipe
    errno = 0;
    if (!write(place, text)) refuse(flag, file, std::strerror(errno));
    return;
  }
  const std::string part = scratch_beside(place, flag);
  const bool is_written = write(part, text);
  const std::string why = std::strerror(errno);
  if (is_written) take_permissions(part, place);
  if (is_written) fs::rename(part, place, code);
  if (is_written && !code) return;
  const std::string reason = code ? code.message() : why;
  fs::remove(part, code);
  refuse(flag, file, reason);
}

}  // namespace kolo::bench
