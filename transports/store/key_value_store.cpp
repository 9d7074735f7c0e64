// Store over a key-value store of the caller. Waits, failures, members and clean-up need only its
// set, get, add and remove.
//
//   kolo.failures, kolo.failure        number of posted failures; text of the first
//   kolo.members/NAME[/RANK]           number of processes that have joined NAME [as RANK]
//   kolo.retired/PREFIX[/I]            number of calls of retire(); keys that call I may remove
#include <fmt/format.h>
#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/bootstrap.h"
#include "transports/error.h"
#include "transports/store/timeouts.h"

namespace kolo::inline v0 {

namespace {

constexpr std::chrono::microseconds kFirstPause{100};
constexpr std::chrono::microseconds kLongestPause{10'000};
// Pause between two questions of failure(): each may cost a round trip over the network.
constexpr std::chrono::milliseconds kBetweenLooks{100};

// How long these questions may fail before the job fails.
constexpr std::chrono::seconds kToleratedSilence{3};

constexpr std::string_view kFailures = "kolo.failures";
constexpr std::string_view kFailure = "kolo.failure";

class KeyValueStore final : public Store {
 public:
  explicit KeyValueStore(KeyValueFunctions functions) : functions_(std::move(functions)) {}

  void set(std::string_view key, std::string_view value) override {
    if (value.size() > kLongestValue) {
      fail_check(fmt::format("store: the value of '{}' has {} bytes, {} at most", key, value.size(),
                             kLongestValue));
    }
    remember(key);
    functions_.set(key, value);
  }

  std::optional<std::string> try_get(std::string_view key) override { return functions_.get(key); }

  std::string get(std::string_view key, Deadline deadline) override {
    const auto start = Clock::now();
    auto pause = kFirstPause;
    while (true) {
      deadline = renewed(deadline, patience_of(deadline, deadline));
      if (auto value = functions_.get(key)) return *std::move(value);
      if (const auto text = failure()) throw Error(ErrorCode::kAborted, kNoPeer, *text);
      if (Clock::now() >= deadline) break;
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    const std::chrono::duration<double> waited = Clock::now() - start;
    throw Error(ErrorCode::kDeadline, kNoPeer,
                fmt::format("waited {:.1f} s for the key '{}' in {}: no rank has set it",
                            waited.count(), key, describe()));
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    remember(key);
    return functions_.add(key, delta);
  }

  void retire(std::string_view prefix, int users) override {
    if (!functions_.remove) return;
    const std::string place = fmt::format("kolo.retired/{}", prefix);
    const std::string lists = place + "/lists";
    functions_.set(fmt::format("{}/{}", place, functions_.add(lists, 1)), take_used(prefix));
    if (functions_.add(place, 1) != users) return;
    const std::int64_t last = functions_.add(lists, 0);
    for (std::int64_t list = 1; list <= last; ++list) {
      const std::string key = fmt::format("{}/{}", place, list);
      remove_listed(functions_.get(key).value_or(""));
      functions_.remove(key);
    }
    functions_.remove(lists);
    functions_.remove(place);
  }

  void join(int rank, std::string_view communicator, int size) override {
    const std::lock_guard lock(mutex_);
    if (joined_.empty() && !communicator.empty()) require_no_failure(rank);
    joined_.push_back({fmt::format("kolo.members/{}/{}", communicator, rank),
                       fmt::format("kolo.members/{}", communicator), !communicator.empty()});
    if (communicator.empty() || std::ranges::count(joined_, joined_.back()) > 1) return;
    const bool is_complete = functions_.add(joined_.back().all, 1) > size && size > 0;
    if (functions_.add(joined_.back().mine, 1) == 1) return;
    leave_last();
    const std::string text = fmt::format(
        "rank {} is taken twice in '{}': another process has joined as this rank, or {} holds "
        "keys of an earlier job; give each process a rank of its own, and each job keys of its "
        "own, by a new prefix",
        rank, communicator, describe());
    if (is_complete) {
      refusal_ = text;
    } else {
      post(text);
    }
    throw Error(ErrorCode::kUnavailable, rank, text);
  }

  void leave() override {
    const std::lock_guard lock(mutex_);
    if (!joined_.empty()) leave_last();
  }

  std::optional<std::string> failure() override {
    const std::lock_guard lock(mutex_);
    if (!refusal_.empty()) return refusal_;
    if (!failure_ && Clock::now() >= next_look_) look();
    return failure_;
  }

  std::string post_failure(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    return refusal_.empty() ? post(text) : refusal_;
  }

  std::string describe() const override { return functions_.name; }

 private:
  struct Joined {
    std::string mine;  // keys: processes that have joined as this rank, and as any rank
    std::string all;
    bool is_counted = false;
    friend bool operator==(const Joined&, const Joined&) = default;
  };

  // --- these need the lock ---

  // A failure from before this rank's time is of this job or of an earlier one: nothing tells
  // which.
  void require_no_failure(int rank) {
    look();
    if (!failure_) return;
    const std::string found = *failure_;
    const auto words = std::min(found.rfind(" ["), found.size());  // code and peer
    failure_ = fmt::format(
        "{} (rank {} found this failure in {} when it began: if it is of an earlier job, give each "
        "job keys of its own, by a new prefix){}",
        found.substr(0, words), rank, describe(), found.substr(words));
    throw Error(ErrorCode::kAborted, kNoPeer, *failure_);
  }

  // One question that fails is no failure of the job: the caller's service may be busy.
  void look() {
    try {
      failure_ = functions_.get(kFailure);
      silent_since_.reset();
    } catch (const std::exception&) {
      if (!silent_since_) silent_since_ = Clock::now();
      if (Clock::now() - *silent_since_ > kToleratedSilence) throw;
    }
    next_look_ = Clock::now() + kBetweenLooks;
  }

  void leave_last() {
    const Joined last = std::move(joined_.back());
    joined_.pop_back();
    if (!last.is_counted || std::ranges::count(joined_, last) > 0) return;
    functions_.add(last.mine, -1);
    functions_.add(last.all, -1);
  }

  std::string post(std::string_view text) {
    if (failure_) return *failure_;
    if (functions_.add(kFailures, 1) == 1) {
      functions_.set(kFailure, text);
      failure_ = text;
    } else {
      failure_ = first_failure(text);
    }
    return *failure_;
  }

  // The rank with the first failure may have counted it, but not yet stored its text.
  std::string first_failure(std::string_view text) {
    const Deadline deadline = Clock::now() + kLastPatience;
    do {
      if (auto first = functions_.get(kFailure)) return *std::move(first);
      std::this_thread::sleep_for(kFirstPause);
    } while (Clock::now() < deadline);
    return std::string(text);
  }

  // --- keys that this process has used, for retire() ---

  void remember(std::string_view key) {
    if (!functions_.remove) return;
    const std::lock_guard lock(used_mutex_);
    used_.emplace(key);
  }

  // Forgets the keys with this prefix; returns them, one a line.
  std::string take_used(std::string_view prefix) {
    const std::lock_guard lock(used_mutex_);
    const auto first = used_.lower_bound(prefix);
    auto last = first;
    std::string list;
    for (; last != used_.end() && last->starts_with(prefix); ++last) {
      if (list.size() + last->size() < kLongestValue) list += *last + '\n';
    }
    used_.erase(first, last);
    return list;
  }

  void remove_listed(std::string_view list) {
    while (!list.empty()) {
      const std::size_t end = list.find('\n');
      functions_.remove(list.substr(0, end));
      list.remove_prefix(end + 1);
    }
  }

  KeyValueFunctions functions_;
  std::mutex mutex_;
  std::vector<Joined> joined_;
  std::string refusal_;  // why the job has refused this process, and goes on without it
  std::optional<std::string> failure_;
  Clock::time_point next_look_{};
  std::optional<Clock::time_point> silent_since_;
  std::mutex used_mutex_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

std::shared_ptr<Store> make_store(KeyValueFunctions functions) {
  check(functions.set && functions.get && functions.add,
        "make_store: a key-value store needs the functions set, get and add");
  return std::make_shared<KeyValueStore>(std::move(functions));
}

}  // namespace kolo::inline v0
