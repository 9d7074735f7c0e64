// Store for ranks that are threads of one process: a table behind a mutex.
#include <fmt/format.h>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>

#include "transports/error.h"
#include "transports/posix/event.h"
#include "transports/rendezvous.h"
#include "transports/store/wrapping_add.h"

namespace kolo {

namespace {

class LocalStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value) override {
    if (value.size() > kLongestValue) {  // same limit as other stores, for portable callers
      throw std::invalid_argument(fmt::format("store: the value of '{}' has {} bytes, {} at most",
                                              key, value.size(), kLongestValue));
    }
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(std::string(key), std::string(value));
    changed_.notify_all();
  }

  std::optional<std::string> try_get(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string get(std::string_view key, Deadline deadline) override {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    auto found = values_.end();
    const bool is_over = changed_.wait_until(lock, deadline, [&] {
      found = values_.find(key);
      return found != values_.end() || failure_.has_value();
    });
    if (found != values_.end()) return found->second;
    if (is_over) throw Error(ErrorCode::kAborted, kNoPeer, *failure_);
    const std::chrono::duration<double> waited = Clock::now() - start;
    throw Error(ErrorCode::kDeadline, kNoPeer,
                fmt::format("waited {:.1f} s for the key '{}' in {}: no thread has set it",
                            waited.count(), key, describe()));
  }

  std::int64_t add(std::string_view key, std::int64_t delta) override {
    const std::lock_guard lock(mutex_);
    auto& counter = counters_[std::string(key)];
    return counter = wrapping_add(counter, delta);
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
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::int64_t> counters_;
  std::optional<std::string> failure_;
  posix::Event failed_;
};

}  // namespace

std::shared_ptr<Store> make_local_store() { return std::make_shared<LocalStore>(); }

}  // namespace kolo
