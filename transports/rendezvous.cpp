// Defaults of Store, and stores over a store: with a key prefix, and with one join for many users.
#include "transports/rendezvous.h"

#include <poll.h>
#include <mutex>
#include <utility>

namespace kolo::inline v0 {

namespace {

// Forwards every call.
class StoreOverStore : public Store {
 public:
  explicit StoreOverStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  void set(std::string_view key, std::string_view value) override { store_->set(key, value); }
  std::optional<std::string> try_get(std::string_view key) override { return store_->try_get(key); }
  void note(std::string_view key, std::string_view value) override { store_->note(key, value); }
  std::shared_ptr<const Answer> ask(std::string_view key) override { return store_->ask(key); }
  std::string get(std::string_view key, Deadline deadline) override {
    return store_->get(key, deadline);
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override {
    return store_->add(key, delta);
  }
  void retire(std::string_view prefix, int users) override { store_->retire(prefix, users); }
  // Liveness and failure belong to the whole job: no prefix.
  void join(int rank, std::string_view communicator, int size) override {
    store_->join(rank, communicator, size);
  }
  void leave() override { store_->leave(); }
  std::optional<std::string> failure() override { return store_->failure(); }
  std::string post_failure(std::string_view text) override { return store_->post_failure(text); }
  std::string job_id() const override { return store_->job_id(); }
  int descriptor() const override { return store_->descriptor(); }
  std::string silence() override { return store_->silence(); }
  std::string suspicion() override { return store_->suspicion(); }
  std::string describe() const override { return store_->describe(); }

 private:
  std::shared_ptr<Store> store_;
};

class PrefixedStore final : public StoreOverStore {
 public:
  PrefixedStore(std::shared_ptr<Store> store, std::string prefix)
      : StoreOverStore(std::move(store)), prefix_(std::move(prefix)) {}

  void set(std::string_view key, std::string_view value) override {
    StoreOverStore::set(full(key), value);
  }
  std::optional<std::string> try_get(std::string_view key) override {
    return StoreOverStore::try_get(full(key));
  }
  void note(std::string_view key, std::string_view value) override {
    StoreOverStore::note(full(key), value);
  }
  std::shared_ptr<const Answer> ask(std::string_view key) override {
    return StoreOverStore::ask(full(key));
  }
  std::string get(std::string_view key, Deadline deadline) override {
    return StoreOverStore::get(full(key), deadline);
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override {
    return StoreOverStore::add(full(key), delta);
  }
  void retire(std::string_view prefix, int users) override {
    StoreOverStore::retire(full(prefix), users);
  }

 private:
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  std::string prefix_;
};

class JoinedOnce final : public StoreOverStore {
 public:
  using StoreOverStore::StoreOverStore;

  void join(int rank, std::string_view communicator, int size) override {
    const std::lock_guard lock(mutex_);
    if (members_ == 0) StoreOverStore::join(rank, communicator, size);
    ++members_;
  }
  void leave() override {
    const std::lock_guard lock(mutex_);
    if (members_ > 0 && --members_ == 0) StoreOverStore::leave();
  }

 private:
  std::mutex mutex_;
  int members_ = 0;
};

}  // namespace

std::shared_ptr<const Store::Answer> Store::ask(std::string_view key) {
  const auto answer = std::make_shared<Answer>();
  answer->value = try_get(key);
  answer->has_come = true;
  return answer;
}

bool wait_for_answers(Store& store, std::span<const std::shared_ptr<const Store::Answer>> answers,
                      Deadline deadline) {
  constexpr int kBetweenLooksMs = 1;
  for (const auto& answer : answers) {
    while (!answer->has_come) {
      const bool is_over = store.failure() || Clock::now() >= deadline;
      if (answer->has_come) break;
      if (is_over) return false;
      pollfd watched{store.descriptor(), POLLIN, 0};
      ::poll(&watched, 1, kBetweenLooksMs);
    }
  }
  return true;
}

std::shared_ptr<Store> prefixed(std::shared_ptr<Store> store, std::string prefix) {
  return std::make_shared<PrefixedStore>(std::move(store), std::move(prefix));
}

std::shared_ptr<Store> joined_once(std::shared_ptr<Store> store) {
  return std::make_shared<JoinedOnce>(std::move(store));
}

}  // namespace kolo::inline v0
