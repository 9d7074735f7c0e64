// Local store, for tests that override a part of the Store interface.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "transports/rendezvous.h"

namespace kolo::test {

class ForwardingStore : public Store {
 public:
  void set(std::string_view key, std::string_view value) override { whole_->set(key, value); }
  std::optional<std::string> try_get(std::string_view key) override { return whole_->try_get(key); }
  std::string get(std::string_view key, Deadline deadline) override {
    return whole_->get(key, deadline);
  }
  std::int64_t add(std::string_view key, std::int64_t delta) override {
    return whole_->add(key, delta);
  }
  void join(int rank, std::string_view communicator, int size) override {
    whole_->join(rank, communicator, size);
  }
  void retire(std::string_view prefix, int users) override { whole_->retire(prefix, users); }
  void leave() override { whole_->leave(); }
  std::optional<std::string> failure() override { return whole_->failure(); }
  std::string post_failure(std::string_view text) override { return whole_->post_failure(text); }

 private:
  const std::shared_ptr<Store> whole_ = make_local_store();
};

}  // namespace kolo::test
