#include "transports/store/all_gather.h"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

constexpr std::size_t kNamedRanks = 8;
constexpr int kFewRanks = 8;                      // need no requests in advance
constexpr std::chrono::milliseconds kShort{100};  // shorter than any timeout that a user sets
// Limits the queries after the deadline, one per rank. Without it a WORLD_SIZE with a few digits
// too many would block its rank for minutes or days.
constexpr int kLookedForRanks = 1024;
// Limits the wait after the deadline, as the store itself may hang.
constexpr std::chrono::milliseconds kToBeAnswered{500};

std::string key_of(std::string_view key, int rank) { return fmt::format("{}/{}", key, rank); }

// Missing ranks in [first, end); all before `first` are present. Empty if the store does not
// answer.
std::vector<int> missing_ranks(Store& store, std::string_view key, int first, int end) {
  std::vector<std::shared_ptr<const Store::Answer>> answers;
  for (int rank = first; rank < end; ++rank) answers.push_back(store.ask(key_of(key, rank)));
  if (!wait_for_answers(store, answers, Clock::now() + kToBeAnswered)) return {};
  std::vector<int> missing;
  for (int rank = first; rank < end; ++rank) {
    if (!answers[static_cast<std::size_t>(rank - first)]->value) missing.push_back(rank);
  }
  if (missing.empty()) missing.push_back(first);  // it has just arrived, after the deadline
  return missing;
}

// Fills in the values that are there already, from rank `first` on. A request per rank and a wait
// for each reply would take most of the start of a large job.
void fill_in(Store& store, std::string_view key, int first,
             std::vector<std::optional<std::string>>& values, Deadline deadline) {
  const auto size = static_cast<int>(values.size());
  std::vector<std::shared_ptr<const Store::Answer>> answers;
  std::vector<int> asked;
  for (int rank = first; rank < size; ++rank) {
    if (values[static_cast<std::size_t>(rank)]) continue;
    asked.push_back(rank);
    answers.push_back(store.ask(key_of(key, rank)));
  }
  if (!wait_for_answers(store, answers, deadline)) return;  // a later get() says why
  for (std::size_t i = 0; i < asked.size(); ++i)
    values[static_cast<std::size_t>(asked[i])] = answers[i]->value;
}

}  // namespace

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == kNamedRanks) return text + fmt::format(" and {} more", ranks.size() - i);
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::vector<std::string> exchange(Store& store, int rank, int size, std::string_view key,
                                  std::string_view value, Deadline deadline,
                                  std::string_view purpose) {
  const auto start = Clock::now();
  store.set(key_of(key, rank), value);
  std::vector<std::string> values;
  std::vector<std::optional<std::string>> known(
      static_cast<std::size_t>(size > kFewRanks && size <= kLookedForRanks ? size : 0));
  int next_fill = 0;
  for (int peer = 0; peer < size; ++peer) {
    try {
      const auto place = static_cast<std::size_t>(peer);
      if (place < known.size() && peer >= next_fill) {
        fill_in(store, key, peer, known, deadline);
        next_fill = peer + 1 + (size - peer) / 2;
      }
      const bool is_known = place < known.size() && known[place];
      values.push_back(peer == rank ? std::string(value)
                       : is_known   ? std::move(*known[place])
                                    : store.get(key_of(key, peer), deadline));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadline) throw;
      const std::chrono::duration<double> waited = Clock::now() - start;
      const int end = peer + std::min(size - peer, kLookedForRanks);
      auto missing = missing_ranks(store, key, peer, end);
      const bool is_silent = missing.empty();
      if (is_silent) missing.push_back(peer);
      const char* const hint =
          waited < kShort ? "; this rank had used most of its timeout before" : "";
      const char* const way_out =
          missing.size() == 1 ? "start it, see why it stopped" : "start them, see why they stopped";
      throw Error(
          ErrorCode::kDeadline, missing.front(),
          fmt::format("rank {}: waited {:.1f} s for {}{} of {} to {} ({}{}){}: {}, or raise "
                      "the timeout (KOLO_TIMEOUT_MS, if the program sets none)",
                      rank, waited.count(), name_ranks(missing),
                      is_silent || end < size ? ", at least," : "", size, purpose, store.describe(),
                      is_silent ? ", which does not answer" : "", hint, way_out));
    }
  }
  return values;
}

}  // namespace kolo::inline v0
