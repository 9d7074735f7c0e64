#include "transports/tcp/host_selection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>

namespace kolo::inline v0::tcp {

namespace {

using Bytes = std::vector<std::uint8_t>;

// The 4 or 16 bytes of a numeric address.
std::optional<Bytes> bytes_of(const std::string& host) {
  std::array<std::uint8_t, sizeof(in6_addr)> bytes{};
  const std::string plain = host.substr(0, host.find('%'));
  if (::inet_pton(AF_INET, plain.c_str(), bytes.data()) == 1)
    return Bytes(bytes.begin(), bytes.begin() + sizeof(in_addr));
  if (::inet_pton(AF_INET6, plain.c_str(), bytes.data()) == 1)
    return Bytes(bytes.begin(), bytes.end());
  return std::nullopt;
}

// Whether `host` is in the network "10.9.0.0/24".
bool is_in(const std::string& host, const std::string& network) {
  const std::size_t slash = network.find('/');
  const auto base = bytes_of(network.substr(0, slash));
  const auto own = bytes_of(host);
  if (!base || !own || base->size() != own->size()) return false;
  std::size_t bits = 0;
  const char* const end = network.data() + network.size();
  const auto [rest, error] = std::from_chars(network.data() + slash + 1, end, bits);
  if (error != std::errc() || rest != end || bits > 8 * own->size()) return false;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    const int shift = 7 - static_cast<int>(bit % 8);
    if ((((*base)[bit / 8] ^ (*own)[bit / 8]) >> shift & 1) != 0) return false;
  }
  return true;
}

bool matches(const posix::InterfaceAddress& address, const std::string& word) {
  if (word.find('/') != std::string::npos) return is_in(address.host, word);
  if (word.starts_with('=')) return address.interface == word.substr(1);
  return address.host == word || address.interface.starts_with(word);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream list(text.substr(text.starts_with('^') ? 1 : 0));
  for (std::string word; std::getline(list, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

}  // namespace

bool is_selection(const std::string& text, std::span<const posix::InterfaceAddress> interfaces) {
  if (text.empty()) return false;
  if (text.find_first_of(",/") != std::string::npos) return true;
  if (text.starts_with('^') || text.starts_with('=')) return true;
  return std::ranges::any_of(interfaces, [&](const posix::InterfaceAddress& address) {
    return address.interface.starts_with(text);
  });
}

std::vector<std::string> select_hosts(const std::string& text,
                                      std::span<const posix::InterfaceAddress> interfaces) {
  const std::vector<std::string> words = words_of(text);
  const bool is_excluding = text.starts_with('^');
  std::vector<std::string> hosts;
  for (const posix::InterfaceAddress& address : interfaces) {
    const bool is_named =
        std::ranges::any_of(words, [&](const std::string& word) { return matches(address, word); });
    const bool is_new = std::ranges::find(hosts, address.host) == hosts.end();
    if (is_named != is_excluding && is_new) hosts.push_back(address.host);
  }
  return hosts;
}

std::string no_selected(const std::string& text,
                        std::span<const posix::InterfaceAddress> interfaces) {
  return fmt::format(
      "KOLO_TCP_HOST='{}' selects no address of this host, which has {}: name an interface (eth0), "
      "a network (10.9.0.0/24), or what to leave out (^docker0)",
      text, list_text(interfaces));
}

std::string list_text(std::span<const posix::InterfaceAddress> interfaces) {
  std::string text;
  for (const posix::InterfaceAddress& address : interfaces) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", address.interface, address.host);
  }
  return text.empty() ? "none" : text;
}

}  // namespace kolo::inline v0::tcp
