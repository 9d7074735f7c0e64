#include "transports/store/url.h"

#include <charconv>

namespace kolo::inline v0 {

namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kFile = "file:";

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  std::uint16_t port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, port);
  if (error != std::errc() || rest != end || port == 0) return std::nullopt;
  return port;
}

}  // namespace

std::optional<StoreUrl> parse_store_url(std::string_view text) {
  if (text.starts_with(kFile) && text.size() > kFile.size())
    return StoreUrl{{}, 0, std::string(text.substr(kFile.size()))};
  if (!text.starts_with(kTcp)) return std::nullopt;
  text.remove_prefix(kTcp.size());
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_port(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (!port || host.empty()) return std::nullopt;
  return StoreUrl{std::string(host), *port, {}};
}

}  // namespace kolo::inline v0
