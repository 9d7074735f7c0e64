#include "collectives/engine/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "collectives/engine/missing_connections.h"

namespace kolo::inline v0 {
namespace {

constexpr std::chrono::milliseconds kLastQuestions{500};

std::string awaited_key(int rank) { return fmt::format("awaited/{}", rank); }

}  // namespace

void publish_wait_edges(Store& store, int rank, std::span<const WaitEdge> awaited,
                        std::span<Channel* const> channels) {
  const std::string missing = awaited.empty() ? "" : missing_connections_of(channels);
  store.note(awaited_key(rank), to_text(awaited) + (missing.empty() ? "" : "\n" + missing));
}

std::shared_ptr<const Store::Answer> ask_for_wait_edges(Store& store, int peer) {
  return store.ask(awaited_key(peer));
}

std::optional<std::string> fetch_wait_edges(Store& store, int peer, Deadline until) {
  const auto answer = ask_for_wait_edges(store, peer);
  return wait_for_answers(store, {&answer, 1}, until) ? answer->value : std::nullopt;
}

Deadline wait_graph_deadline(Store& store) {
  const Deadline now = Clock::now();
  return store.silence().empty() ? now + kLastQuestions : now;
}

int find_stalled_rank(Store& store, int rank, int size, int peer, Deadline until) {
  std::vector<int> asked = {peer};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto said = fetch_wait_edges(store, asked[i], until);
    if (!said || said->empty()) return asked[i];
    for (const auto& [next, is_to_send] : wait_edges_from(*said, size)) {
      if (next == rank) continue;  // this rank itself
      if (std::ranges::find(asked, next) == asked.end()) asked.push_back(next);
    }
  }
  return peer;
}

std::optional<std::pair<int, int>> find_facing_pair(Store& store, int rank, int size, int peer,
                                                    Deadline until) {
  std::set<std::pair<int, int>> edges = {{rank, peer}};
  std::vector<int> asked = {peer};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const int waiting = asked[i];
    const auto said = fetch_wait_edges(store, waiting, until);
    for (const auto& [next, is_to_send] : wait_edges_from(said.value_or(""), size)) {
      if (edges.contains({next, waiting})) return std::minmax({waiting, next});
      edges.insert({waiting, next});
      if (next != rank && std::ranges::find(asked, next) == asked.end()) asked.push_back(next);
    }
  }
  return std::nullopt;
}

std::string wait_chain_text(int awaited, int last) {
  if (last == awaited) return "";
  return fmt::format("rank {} waits too, at the end of the chain for rank {}; ", awaited, last);
}

}  // namespace kolo::inline v0
