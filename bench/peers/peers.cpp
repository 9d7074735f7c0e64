#include "bench/peers/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

namespace kolo::bench {

#define KOLO_ROW(name) std::unique_ptr<Library> make_##name(const LibraryRequest& request);
#include "peer_table.inc"
#undef KOLO_ROW

namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Library> (*make)(const LibraryRequest&);
};

// The last row ends the table, which may be empty otherwise.
constexpr Row kPeers[] = {
#define KOLO_ROW(name) {#name, make_##name},
#include "peer_table.inc"
#undef KOLO_ROW
    {"", nullptr}};

const Row& find_peer(std::string_view name) {
  const std::string_view base = name.substr(0, name.find(':'));
  for (const Row& row : kPeers) {
    if (row.make != nullptr && row.name == base) return row;
  }
  const auto names = peer_names();
  throw std::invalid_argument(
      fmt::format("'{}' is not among the peers in this build ({})", base,
                  names.empty() ? "none: libgloo-dev was absent when it was configured"
                                : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

std::vector<std::string_view> peer_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kPeers) {
    if (row.make != nullptr) names.push_back(row.name);
  }
  return names;
}

std::unique_ptr<Library> make_peer(std::string_view name, LibraryRequest request) {
  const Row& row = find_peer(name);
  const auto colon = name.find(':');
  request.algorithm = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  return row.make(request);
}

void require_peer(std::string_view name) { find_peer(name); }

}  // namespace kolo::bench
