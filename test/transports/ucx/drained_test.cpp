// When a channel is drained. UCX may still hold data that counts as sent, and sends it only while
// this rank calls. ("every clause over tcp with small buffers" tests the same over sockets.)
#include <array>
#include <string>

#include "test/support/catch.h"
#include "test/transports/ucx/fake_shared_state.h"
#include "transports/ucx/channel.h"

using namespace kolo;
using namespace kolo::test;
using ucx::Kind;

namespace {

constexpr const char* kTcp = "lane[0]:  0:tcp/lo.0 md[0] -> md[0]/tcp/sysdev[255] am am_bw#0\n";
constexpr const char* kPosix = "lane[0]:  2:posix/memory.0 md[1] -> md[1]/posix am am_bw#0\n";

// Rank 0's channel to rank 1 on another host, with one segment sent.
struct Sender {
  explicit Sender(const char* carriers) {
    played().carriers = carriers;
    REQUIRE(channel.send(data, kPlain));
  }

  void hear_of_credit(std::uint32_t released) {
    const ucx::Header header{6, 1, 0, released};
    channel.accept(Kind::kCredit, {header, {}}, nullptr, 0, 0);
  }

  // Number of messages that are no segments, without the one that connects.
  std::size_t notes() const { return played().sent.size() - 2; }

  std::array<std::byte, 8> data{};
  FakeSharedState station;
  ucx::UcxChannel channel{station, 1, 4096, 4096};
};

void finish(const FakeUcx::Sent& sent) {
  int request = 0;
  sent.callback(&request, UCS_OK, sent.user_data);
}

}  // namespace

TEST_CASE("a channel is drained without a message if UCX holds none of its bytes") {
  Sender sender(kTcp);
  CHECK(sender.channel.is_drained());
  CHECK(sender.channel.is_drained());
  CHECK(played().flushes.size() == 1);
  CHECK(sender.notes() == 0);
}

TEST_CASE("a channel whose data UCX holds is drained once a later message has completed") {
  Sender sender(kTcp);
  played().keeps_sent = true;
  played().completes_at_once = false;
  CHECK_FALSE(sender.channel.is_drained());
  CHECK_FALSE(sender.channel.is_drained());
  REQUIRE(sender.notes() == 1);
  CHECK(played().sent.back().id == static_cast<unsigned>(Kind::kCredit));
  finish(played().sent.back());
  CHECK(sender.channel.is_drained());
  CHECK(sender.notes() == 1);
}

TEST_CASE("a probe behind the last segment does not cover the next segment") {
  Sender sender(kTcp);
  played().keeps_sent = true;
  played().completes_at_once = false;
  CHECK_FALSE(sender.channel.is_drained());
  const auto probe = played().sent.back();
  REQUIRE(sender.channel.send(sender.data, kPlain));
  finish(played().sent.back());
  finish(probe);
  CHECK_FALSE(sender.channel.is_drained());
  finish(played().sent.back());
  CHECK(sender.channel.is_drained());
}

TEST_CASE("data that the peer has received is drained, whatever UCX holds for others") {
  Sender sender(kTcp);
  played().keeps_sent = true;
  sender.hear_of_credit(1);
  CHECK(sender.channel.is_drained());
  CHECK(played().flushes.empty());
  CHECK(sender.notes() == 0);
}

TEST_CASE("a queue in shared memory holds no data back, so UCX is not asked") {
  Sender sender(kPosix);
  played().keeps_sent = true;
  CHECK(sender.channel.is_drained());
  CHECK(played().flushes.empty());
}
