#include "bench/measure/memory_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace kolo::bench {
namespace {

posix::Descriptor open_file(const std::string& what_for) {
  posix::Descriptor file(memfd_create("kolo-bench", MFD_CLOEXEC));
  if (file.is_open()) return file;
  const std::string why = posix::error_text(errno);
  std::error_code absent;
  const std::string folder = std::filesystem::temp_directory_path(absent).string();
  std::string path = folder + "/kolo-bench-XXXXXX";
  file = posix::Descriptor(mkostemp(path.data(), O_CLOEXEC));
  if (file.is_open()) {
    unlink(path.c_str());
  } else {
    posix::throw_system(
        fmt::format("{}: no memfd ({}), and no file in {} (TMPDIR)", what_for, why, folder));
  }
  return file;
}

}  // namespace

posix::Descriptor make_memory_file(std::size_t bytes, const std::string& what_for) {
  posix::Descriptor file = open_file(what_for);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) posix::throw_system(what_for);
  return file;
}

}  // namespace kolo::bench
