#include "transports/posix/identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>

#include "transports/error.h"
#include "transports/posix/descriptor.h"

namespace kolo::posix {

namespace {

// Where no descriptor is left a host would else be taken for another.
std::string first_word_of(const char* path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && (errno == EMFILE || errno == ENFILE)) {
    throw Error(ErrorCode::kSystem, kNoPeer,
                fmt::format("cannot read {}: {}", path, error_text(errno)));
  }
  std::string word;
  file >> word;
  return word;
}

// A namespace is named by its link's text: "net:[4026531840]".
std::string link_text(const char* path) {
  std::array<char, 256> text{};
  const auto length = ::readlink(path, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string host_identity() {
  return host_name() + "/" + first_word_of("/proc/sys/kernel/random/boot_id") + "/" +
         link_text("/proc/self/ns/net");
}

std::string process_identity() {
  return host_identity() + "/" + link_text("/proc/self/ns/pid") + "/" + std::to_string(::getpid());
}

}  // namespace kolo::posix
