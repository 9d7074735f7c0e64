// Bootstrap of cuda_ipc ranks in a process without free file descriptors.
#include <memory>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_peer.h"
#include "test/transports/support/descriptor_limit.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;

TEST_CASE("silent unknown clients give up their descriptors when a cuda_ipc rank accepts a peer") {
  FakeMachine machine;
  const auto store = make_local_store();
  BootstrapRank rank(machine, store);
  FakePeer peer(store, rank.driver());
  const posix::Descriptor call = peer.take_call();
  FakePeer::say(call, peer.token_of_rank_0());
  const auto unknown = silent_clients(peer.socket(), 8);
  peer.come();
  {
    const DescriptorLimit scarce;
    peer.say_hello();
    CHECK(peer.answer() == peer.own_token());
  }
  CHECK(is_hung_up(unknown.front()));
  peer.say_mapped();
  CHECK(rank.met().peers[1].accepted.is_open());
}

TEST_CASE("silent unknown clients give up their descriptors when a cuda_ipc rank connects") {
  FakeMachine machine;
  const auto store = make_local_store();
  BootstrapRank rank(machine, store);
  FakePeer peer(store, rank.driver(), FakePeer::Queue::kFull);  // rank 0 connects again and again
  const auto unknown = silent_clients(peer.socket(), 8);
  {
    const DescriptorLimit scarce;
    // the descriptors that rank 0 has closed between two attempts
    std::vector<posix::Descriptor> taken;
    until(
        [&] {
          taken.emplace_back(::dup(0));
          return is_hung_up(unknown.front());
        },
        "an unknown client's descriptor is used");
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
  const auto store = make_local_store();
  BootstrapRank rank(machine, store);
  FakePeer peer(store, rank.driver());
  const posix::Descriptor call = peer.take_call();
  FakePeer::say(call, peer.token_of_rank_0());
  peer.come();
  silent_clients(peer.socket(), 0);  // it is accepted, and silent
  const DescriptorLimit scarce;
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
