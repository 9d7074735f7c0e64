// Bootstrap of cuda_ipc ranks in a process without free file descriptors.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_peer.h"
#include "test/transports/store/forwarding_store.h"
#include "test/transports/support/descriptor_limit.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// Stops the rank where it looks for a failure, once in each round of the bootstrap. There it holds
// no descriptor for a moment only.
class PausingStore final : public ForwardingStore {
 public:
  std::optional<std::string> failure() override {
    std::unique_lock lock(mutex_);
    is_at_rest_ = is_pausing_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_pausing_; });
    is_at_rest_ = false;
    return ForwardingStore::failure();
  }

  // Sets the limit while the rank is stopped, so that no descriptor becomes free afterwards.
  DescriptorLimit limit_descriptors() {
    std::unique_lock lock(mutex_);
    is_pausing_ = true;
    changed_.wait(lock, [this] { return is_at_rest_; });
    const Resume at_end{*this};
    return {};
  }

 private:
  struct Resume {
    ~Resume() {
      store.is_pausing_ = false;
      store.changed_.notify_all();
    }
    PausingStore& store;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_pausing_ = false;
  bool is_at_rest_ = false;
};

}  // namespace

TEST_CASE("silent unknown clients give up their descriptors when a cuda_ipc rank accepts a peer") {
  FakeMachine machine;
  const auto store = std::make_shared<PausingStore>();
  BootstrapRank rank(machine, store);
  FakePeer peer(store, rank.driver());
  const posix::Descriptor call = peer.take_call();
  FakePeer::say(call, peer.token_of_rank_0());
  const auto unknown = silent_clients(peer.socket(), 8);
  peer.come();
  {
    const DescriptorLimit scarce = store->limit_descriptors();
    peer.say_hello();
    CHECK(peer.answer() == peer.own_token());
  }
  CHECK(is_hung_up(unknown.front()));
  peer.say_mapped();
  CHECK(rank.met().peers[1].accepted.is_open());
}

TEST_CASE("silent unknown clients give up their descriptors when a cuda_ipc rank connects") {
  FakeMachine machine;
  const auto store = std::make_shared<PausingStore>();
  BootstrapRank rank(machine, store);
  FakePeer peer(store, rank.driver(), FakePeer::Queue::kFull);  // rank 0 connects again and again
  const auto unknown = silent_clients(peer.socket(), 8);
  {
    const DescriptorLimit scarce = store->limit_descriptors();
    until_hung_up(unknown.front());
  }
  peer.empty_queue();
  const posix::Descriptor call = peer.take_call();
  CHECK(FakePeer::hear(call).first.token == peer.own_token());
  FakePeer::say(call, peer.token_of_rank_0());
  peer.come();
  peer.say_hello();
  CHECK(peer.answer() == peer.own_token());
  peer.say_mapped();
  CHECK(rank.met().peers[1].called.is_open());
}

TEST_CASE("a cuda_ipc rank without a descriptor for the bootstrap reports it") {
  FakeMachine machine;
  const auto store = std::make_shared<PausingStore>();
  BootstrapRank rank(machine, store);
  FakePeer peer(store, rank.driver());
  const posix::Descriptor call = peer.take_call();
  FakePeer::say(call, peer.token_of_rank_0());
  peer.come();
  silent_clients(peer.socket(), 0);  // it is accepted, and silent
  const DescriptorLimit scarce = store->limit_descriptors();
  peer.say_hello();
  try {
    rank.met();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("rank 0: no file descriptor is left") &&
                                 ContainsSubstring("ulimit -n") && ContainsSubstring("cuda_ipc"));
  }
}
