// The store with every key prefixed.
#include "transports/rendezvous.h"

#include <utility>

namespace kolo {

namespace {

class PrefixedStore final : public Store {
 public:
  PrefixedStore(std::shared_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  void set(std::string_view key, std::string_view value) override { store_->set(full(key), value); }
  std::optional<std::string> try_get(std::string_view key) override {
    return store_->try_get(full(key));
  }
  std::string get(std::string_view key, Deadline deadline) override {
    return store_->get(full(key), deadline);
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override {
    return store_->add(full(key), delta);
  }

  // Life, death and failure concern the whole job.
  void join(int rank) override { store_->join(rank); }
  void leave() override { store_->leave(); }
  std::optional<std::string> failure() override { return store_->failure(); }
  std::string post_failure(std::string_view text) override { return store_->post_failure(text); }
  int descriptor() const override { return store_->descriptor(); }
  std::string describe() const override { return store_->describe(); }

 private:
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  std::shared_ptr<Store> store_;
  std::string prefix_;
};

}  // namespace

std::shared_ptr<Store> prefixed(std::shared_ptr<Store> store, std::string prefix) {
  return std::make_shared<PrefixedStore>(std::move(store), std::move(prefix));
}

}  // namespace kolo
