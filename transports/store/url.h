// Parser of KOLO_STORE, a store's address: "tcp://host:port", "tcp://[v6]:port" or "file:PATH".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kolo::inline v0 {

struct StoreUrl {
  std::string host;  // of a TCP store, with its port
  std::uint16_t port = 0;
  std::string path;  // of a file store
};

// Returns nothing for any other text.
std::optional<StoreUrl> parse_store_url(std::string_view text);

}  // namespace kolo::inline v0
