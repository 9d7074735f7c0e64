#include "collectives/engine/missing_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/engine/wait_graph.h"

namespace kolo::inline v0 {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostRows = 16;
constexpr std::size_t kLongestRow = 300;
constexpr std::size_t kLongestTable = 2400;
constexpr auto kBetweenQuestions = 10ms;

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// A channel's reason as one line, without the advice behind "; ".
std::string row_from(std::string said) {
  said.resize(std::min(said.find("; "), said.size()));
  if (said.size() > kLongestRow) said.replace(kLongestRow, std::string::npos, "...");
  std::ranges::replace(said, '\n', ' ');
  return said;
}

std::vector<std::string> rows_of(std::span<Channel* const> channels) {
  std::vector<std::string> rows;
  for (Channel* const channel : channels) {
    std::string row = channel == nullptr ? "" : row_from(channel->why_unconnected());
    // A cause on this rank, such as too few descriptors, gives one row for all peers.
    if (!row.empty() && std::ranges::find(rows, row) == rows.end()) rows.push_back(std::move(row));
  }
  return rows;
}

// The rows in a rank's published text: all lines after the first, which has the wait edges.
std::string rows_in(std::string_view published) {
  take_line(published);
  return std::string(published);
}

// Fetches the rows of the ranks that answer before `until`. With `waits_for_all`, asks again until
// every rank has published a wait.
void ask_for_rows(Store& store, int rank, std::vector<std::string>& rows, Deadline until,
                  bool waits_for_all) {
  while (true) {
    std::vector<std::shared_ptr<const Store::Answer>> answers;
    for (int peer = 0; peer < static_cast<int>(rows.size()); ++peer)
      answers.push_back(ask_for_wait_edges(store, peer));
    const bool have_come = wait_for_answers(store, answers, until);
    bool is_complete = true;
    for (int peer = 0; peer < static_cast<int>(rows.size()); ++peer) {
      const Store::Answer& answer = *answers[static_cast<std::size_t>(peer)];
      if (peer == rank || !answer.has_come) continue;
      is_complete &= answer.value && !answer.value->empty();
      rows[static_cast<std::size_t>(peer)] = rows_in(answer.value.value_or(""));
    }
    if (!have_come || !waits_for_all || is_complete) return;
    if (Clock::now() >= until || store.failure()) return;
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

// True if the table has only one row, and `text` contains it.
bool has_only_row(std::string_view text, std::span<const std::string> rows) {
  std::string_view only;
  for (std::string_view of_rank : rows) {
    if (of_rank.empty()) continue;
    if (!only.empty() || take_line(of_rank) != "1") return false;
    only = take_line(of_rank);
  }
  return text.find(only) != std::string_view::npos;
}

}  // namespace

std::string missing_connections_of(std::span<Channel* const> channels) {
  const std::vector<std::string> rows = rows_of(channels);
  if (rows.empty()) return "";
  std::string text = std::to_string(rows.size());
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) text += '\n' + rows[i];
  return text;
}

std::string missing_connections_table(std::span<const std::string> rows) {
  std::string table;
  std::size_t shown = 0;
  std::size_t all = 0;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    std::string_view rest = rows[rank];
    const std::string_view number = take_line(rest);
    std::size_t of_rank = 0;
    std::from_chars(number.data(), number.data() + number.size(), of_rank);
    all += of_rank;
    for (; of_rank > 0 && !rest.empty(); --of_rank) {
      const std::string row =
          fmt::format("\n  rank {}: {}", rank, row_from(std::string(take_line(rest))));
      if (shown == kMostRows || table.size() + row.size() > kLongestTable) break;
      table += row;
      ++shown;
    }
  }
  if (shown == 0) return "";
  if (all > shown) table += fmt::format("\n  and {} more", all - shown);
  return "\nmissing connections:" + table;
}

std::string find_missing_connections(Store& store, int rank, std::span<Channel* const> channels,
                                     const Error& failure) {
  const bool is_refused = failure.code() == ErrorCode::kPeerLost;
  if (channels.empty() || (!is_refused && failure.code() != ErrorCode::kDeadline)) return "";
  try {
    std::vector<std::string> rows(channels.size());
    rows[static_cast<std::size_t>(rank)] = missing_connections_of(channels);
    if (is_refused && (rows[static_cast<std::size_t>(rank)].empty() || store.failure())) return "";
    const Deadline until =
        is_refused ? Clock::now() + kPublishWaitsAfter : wait_graph_deadline(store);
    ask_for_rows(store, rank, rows, until, is_refused);
    if (has_only_row(failure.what(), rows)) return "";
    return missing_connections_table(rows);
  } catch (const std::exception&) {
    return "";  // the store is gone, or memory has run out
  }
}

}  // namespace kolo::inline v0
