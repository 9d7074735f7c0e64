// A provider that takes no word to the peer any more: who owes credit says so, and waits for
// nobody.
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdexcept>

#include "test/support/catch.h"
#include "transports/lifeline.h"
#include "transports/ofi/channel.h"
#include "transports/ofi/provider.h"

namespace kolo {

namespace {

constexpr std::size_t kSegmentBytes = 4096;
constexpr int kCalls = 10000;

// Two ranks of one thread.
struct Rank {
  Rank(int rank, const std::string& provider)
      : endpoint(ofi::find_provider(provider).info, 256, false), lifeline(rank, 2, "") {}

  void join(const Rank& other, int rank) {
    const bool is_first = rank == 0;
    endpoint.know(is_first ? std::vector{endpoint.name(), other.endpoint.name()}
                           : std::vector{other.endpoint.name(), endpoint.name()});
    lifeline.know(is_first ? std::vector{lifeline.address(), other.lifeline.address()}
                           : std::vector{other.lifeline.address(), lifeline.address()});
    const auto token = [](int of) { return static_cast<std::uint32_t>(of) + 5; };
    channel.emplace(endpoint, lifeline,
                    ofi::Pair{rank, 1 - rank, kSegmentBytes, kSegmentBytes, ofi::kSlots,
                              token(rank), token(1 - rank), 4, 4});
  }

  // The endpoint ends first: what is posted belongs to the channel.
  std::optional<ofi::OfiChannel> channel;
  ofi::Endpoint endpoint;
  Lifeline lifeline;
};

}  // namespace

TEST_CASE("credit that the provider refuses for ever is an error with its reason, not a wait") {
  if (ofi::usable_providers().empty()) {
    WARN("skipped: libfabric has none of the providers that ofi knows");
    return;
  }
  const std::string provider = ofi::provider_for("");
  Rank receiver(0, provider);
  Rank sender(1, provider);
  receiver.join(sender, 0);
  sender.join(receiver, 1);
  fi_ops_tagged refusing = *receiver.endpoint.handle()->tagged;
  refusing.injectdata = [](fid_ep*, const void*, size_t, uint64_t, fi_addr_t, uint64_t) {
    return ssize_t{-FI_ENOTCONN};
  };
  receiver.endpoint.handle()->tagged = &refusing;
  std::array<std::byte, 8> data{};
  std::string why;
  std::uint64_t sent = 0;
  std::uint64_t taken = 0;
  try {
    for (int i = 0; i < kCalls || taken < ofi::kSlots; ++i) {
      if (sent < ofi::kSlots && sender.channel->send(data, kPlain)) ++sent;
      sender.channel->is_drained();
      if (receiver.channel->receive(data, kPlain)) ++taken;
    }
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 1);
    why = error.what();
  }
  CHECK(taken >= ofi::kSlots / 2);
  CHECK_THAT(why, ContainsSubstring("rank 0: cannot give credit to rank 1 (ofi, "));
}

}  // namespace kolo
