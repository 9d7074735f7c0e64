#include "transports/posix/host/identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

namespace {

// Throws if the process is out of descriptors: an empty word would make two processes of one host
// look like two hosts.
std::string first_word_of(const char* path) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.is_open() && (errno == EMFILE || errno == ENFILE)) {
    throw_system(fmt::format("cannot read {}", path));
  }
  std::array<char, 256> text{};
  const auto length = file.is_open() ? ::read(file.get(), text.data(), text.size()) : 0;
  const std::string_view read(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return std::string(read.substr(0, read.find_first_of(" \n")));
}

// Text of the link that names a namespace: "net:[4026531840]".
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

std::string full_host_name() {
  std::string name = host_name();
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return name;
  if (found->ai_canonname != nullptr) name = found->ai_canonname;
  ::freeaddrinfo(found);
  return name;
}

std::string host_identity() {
  return host_name() + "/" + first_word_of("/proc/sys/kernel/random/boot_id") + "/" +
         link_text("/proc/self/ns/net");
}

std::string clock_identity() { return host_identity() + "/" + link_text("/proc/self/ns/time"); }

std::string process_identity() {
  return host_identity() + "/" + link_text("/proc/self/ns/pid") + "/" + std::to_string(::getpid());
}

}  // namespace kolo::inline v0::posix
