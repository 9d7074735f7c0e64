// Pending connections of a bootstrap listener when no descriptor is left.
#include <cstring>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/support/descriptor_limit.h"
#include "test/transports/support/unix_clients.h"
#include "transports/posix/pending_connections.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr std::string_view kHello = "hello";

}  // namespace

TEST_CASE(
    "a rank takes over the descriptors of silent clients, and other clients wait for free ones") {
  posix::UnixListener listener(16);
  std::vector<posix::Descriptor> let_in;
  posix::PendingConnections::Handlers house;
  house.hello_bytes = kHello.size();
  house.is_hello = [](auto said) { return std::memcmp(said.data(), "hello", 5) == 0; };
  house.let_in = [&](auto, posix::Descriptor socket, posix::Descriptor passed) {
    CHECK(passed.is_open());
    let_in.push_back(std::move(socket));
    let_in.push_back(std::move(passed));
  };
  posix::PendingConnections callers(house, 0);
  std::vector<posix::Descriptor> unknown_clients;
  for (int i = 0; i < 4; ++i) unknown_clients.push_back(come_to(listener.name()));
  callers.look(listener);
  std::vector<posix::Descriptor> ranks;
  for (int i = 0; i < 3; ++i) {
    ranks.push_back(come_to(listener.name()));
    posix::send_message(ranks.back().get(), bytes_of(kHello), listener.descriptor());
  }
  const posix::Descriptor rude = come_to(listener.name());
  posix::send_message(rude.get(), bytes_of("GET /"), listener.descriptor());
  {
    const DescriptorLimit none;
    callers.look(listener);
    // one rank: later clients have taken the descriptors of the silent ones
    CHECK(let_in.size() == 2);
    for (const auto& unknown_client : unknown_clients) CHECK(is_hung_up(unknown_client));
    CHECK_THAT(callers.why_kept_out(), ContainsSubstring("ulimit -n"));
    callers.look(listener);
    CHECK(let_in.size() == 2);
    unknown_clients.clear();  // now descriptors are free
    callers.look(listener);
    CHECK(let_in.size() == 6);
    CHECK(callers.why_kept_out().empty());
    CHECK(is_hung_up(rude));
  }
}
