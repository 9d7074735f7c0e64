// Store for ranks that are threads of one process: a table behind a mutex.
#include <fmt/format.h>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "transports/error.h"
#include "transports/posix/event.h"
#include "transports/rendezvous.h"
#include "transports/store/tables.h"
#include "transports/store/timeouts.h"

namespace kolo::inline v0 {

namespace {

class LocalStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value) override {
    if (value.size() > kLongestValue) {  // same limit as other stores, for portable callers
      throw std::invalid_argument(fmt::format("store: the value of '{}' has {} bytes, {} at most",
                                              key, value.size(), kLongestValue));
    }
    const std::lock_guard lock(mutex_);
    tables_.set(key, std::string(value));
    changed_.notify_all();
  }

  std::optional<std::string> try_get(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    const std::string* const found = tables_.find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }

  std::string get(std::string_view key, Deadline deadline) override {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    const std::string* found = nullptr;
    const auto has_news = [&] {
      found = tables_.find(key);
      return found != nullptr || failure_.has_value();
    };
    bool is_over = false;
    do {
      deadline = renewed(deadline, patience_of(deadline, deadline));
      is_over = changed_.wait_until(lock, deadline, has_news);
    } while (!is_over && renewed(deadline, {}) != deadline);
    if (found != nullptr) return *found;
    if (is_over) throw Error(ErrorCode::kAborted, kNoPeer, *failure_);
    const std::chrono::duration<double> waited = Clock::now() - start;
    throw Error(ErrorCode::kDeadline, kNoPeer,
                fmt::format("waited {:.1f} s for the key '{}' in {}: no thread has set it",
                            waited.count(), key, describe()));
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    const std::lock_guard lock(mutex_);
    return tables_.add(key, delta);
  }

  void retire(std::string_view prefix, int users) override {
    const std::lock_guard lock(mutex_);
    tables_.retire(prefix, users);
  }

  // A thread does not die without its process, so there is no liveness to watch.
  void join(int, std::string_view, int) override {}
  void leave() override {}

  std::optional<std::string> failure() override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  std::string post_failure(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      failure_ = std::string(text);
      failed_.ring();  // never reset, so the descriptor stays readable
      changed_.notify_all();
    }
    return *failure_;
  }

  int descriptor() const override { return failed_.descriptor(); }
  std::string describe() const override { return "this process's store"; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  StoreTables tables_;
  std::optional<std::string> failure_;
  posix::Event failed_;
};

}  // namespace

std::shared_ptr<Store> make_local_store() { return std::make_shared<LocalStore>(); }

}  // namespace kolo::inline v0
