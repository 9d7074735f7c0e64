// A provider that accepts no message to the peer. A rank that owes credit retries for a while and
// then reports an error, unless the peer has ended.
#include <optional>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/ofi/failing_libfabric.h"
#include "transports/base/liveness.h"
#include "transports/ofi/channel.h"
#include "transports/ofi/provider.h"

namespace kolo::test {

namespace {

constexpr std::size_t kSegmentBytes = 4096;
constexpr int kOften = 10000;
constexpr auto kFarTooLong = std::chrono::hours(24);

// Two ranks on one thread; rank 0's endpoint can refuse injected messages.
struct Rank {
  Rank(int rank, const std::string& provider)
      : endpoint(ofi::find_provider(provider).info, 256, false), liveness(rank, 2) {}

  void join(const Rank& other, int rank, Clock::duration patience) {
    const bool is_first = rank == 0;
    const auto in_order = [&](auto own, auto theirs) {
      return is_first ? std::vector{own, theirs} : std::vector{theirs, own};
    };
    endpoint.know(in_order(endpoint.name(), other.endpoint.name()));
    liveness.know(in_order(liveness.address(), other.liveness.address()));
    ofi::Pair pair{rank, 1 - rank, kSegmentBytes, kSegmentBytes, ofi::kSlots, 5, 5, 4, 4};
    (is_first ? pair.peer_token : pair.own_token) = 6;
    pair.patience = patience;
    channel.emplace(endpoint, liveness, pair);
  }

  // Destroy the endpoint first: its posted operations belong to the channel.
  std::optional<ofi::OfiChannel> channel;
  ofi::Endpoint endpoint;
  PeerLiveness liveness;
};

struct Ranks {
  explicit Ranks(Clock::duration patience) {
    const std::string provider = ofi::provider_for("");
    let_fail(provider, Fails::kInjecting);
    receiver.emplace(0, provider);
    let_all_fail(Fails::kNever);
    sender.emplace(1, provider);
    receiver->join(*sender, 0, patience);
    sender->join(*receiver, 1, patience);
  }

  void refuse() { let_all_fail(Fails::kInjecting); }
  void take_again() { let_all_fail(Fails::kNever); }
  ~Ranks() { let_all_fail(Fails::kNever); }

  void turn() {
    for (Rank* const rank : {&*sender, &*receiver}) {
      rank->endpoint.poll();
      if (rank->channel->has_unposted()) rank->channel->push_owed();
    }
    std::this_thread::yield();
  }

  void turn_often() {
    for (int i = 0; i < kOften; ++i) turn();
  }

  template <typename Condition>
  bool turn_until(const Condition& is_done) {
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (!is_done() && Clock::now() < end) turn();
    return is_done();
  }

  // Moves a whole window of segments, for which credit is due.
  bool move_a_window() {
    std::array<std::byte, 8> data{};
    std::array<std::byte, 8> got{};
    std::size_t sent = 0;
    std::size_t taken = 0;
    return turn_until([&] {
      if (sent < ofi::kSlots && sender->channel->send(data, kPlain)) ++sent;
      if (taken < ofi::kSlots && receiver->channel->receive(got, kPlain)) ++taken;
      return taken == ofi::kSlots;
    });
  }

  // Makes the provider refuse the credit for a window, so that it stays owed.
  void owe_a_window() {
    refuse();
    REQUIRE(move_a_window());
    turn_often();
    CHECK(receiver->channel->has_unposted());
  }

  std::optional<Rank> receiver;
  std::optional<Rank> sender;
};

bool has_provider() {
  if (!ofi::usable_providers().empty()) return true;
  WARN("skipped: libfabric has none of the providers that ofi knows");
  return false;
}

}  // namespace

TEST_CASE("credit refused for too long while the peer lives is an error with its reason") {
  if (!has_provider()) return;
  Ranks ranks(Clock::duration::zero());
  ranks.refuse();
  std::string why;
  try {
    ranks.move_a_window();
    ranks.turn_often();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 1);
    why = error.what();
  }
  CHECK_THAT(why, ContainsSubstring("rank 0: cannot give credit to rank 1 (ofi, ") &&
                      ContainsSubstring("KOLO_OFI_PROVIDER"));
}

TEST_CASE("refused credit is retried until the provider accepts it") {
  if (!has_provider()) return;
  Ranks ranks(kFarTooLong);
  ranks.owe_a_window();
  CHECK_THAT(ranks.receiver->channel->under_way(), ContainsSubstring("knows of 0 received"));
  ranks.take_again();
  CHECK(ranks.turn_until([&] { return !ranks.receiver->channel->has_unposted(); }));
  CHECK_THAT(ranks.receiver->channel->under_way(), ContainsSubstring("knows of 8 received"));
}

// The end of the endpoint may arrive before the end of liveness.
TEST_CASE("refused credit is no error if the peer has ended") {
  if (!has_provider()) return;
  Ranks ranks(kFarTooLong);
  ranks.owe_a_window();
  ranks.sender->liveness.close();
  CHECK(ranks.turn_until([&] { return !ranks.receiver->channel->has_unposted(); }));
}

}  // namespace kolo::test
