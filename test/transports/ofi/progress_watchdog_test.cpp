// Detection of a dead provider thread by messages of a rank to itself.
#include "transports/ofi/progress_watchdog.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <optional>
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/ofi/bootstrap.h"
#include "transports/ofi/provider.h"
#include "transports/ofi/transport.h"
#include "transports/posix/descriptor.h"

namespace kolo {

namespace {

using namespace std::chrono_literals;
using ofi::ProgressWatchdog;

// Looks every `step`, until the verdict is not kFine.
struct Looked {
  ProgressWatchdog::Verdict verdict;
  Clock::duration after;
};
Looked look_on(ProgressWatchdog& pulse, Clock::time_point& now, Clock::duration step,
               std::uint64_t done) {
  const auto begin = now;
  while (true) {
    now += step;
    const auto verdict = pulse.look(now, done);
    if (verdict != ProgressWatchdog::Verdict::kFine || now - begin > 1h)
      return {verdict, now - begin};
  }
}

// Sends garbage to the rank's endpoint. Any bytes may end the provider's thread if they arrive
// between two of its polls; these bytes always do. The sockets provider takes them for a message
// (second byte, 0) of 128 bytes (last byte of the header) in an invalid protocol version (first
// byte).
void send_garbage(Store& store, int rank) {
  const auto text = store.get("address/" + std::to_string(rank), Clock::now() + 60s);
  const std::string name = ofi::address_from_text(text, rank).name;
  const auto* const address = reinterpret_cast<const sockaddr*>(name.data());
  const posix::Descriptor unknown_client(::socket(address->sa_family, SOCK_STREAM, 0));
  const auto length =
      static_cast<socklen_t>(address->sa_family == AF_INET ? sizeof(sockaddr_in) : name.size());
  REQUIRE(::connect(unknown_client.get(), address, length) == 0);
  std::string garbage(128, '\0');
  garbage[23] = static_cast<char>(128);
  REQUIRE(::send(unknown_client.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL) == 128);
}

TransportRequest request_of(int rank, const std::shared_ptr<Store>& store) {
  return {rank, 2, store, Clock::now() + 60s, 0, 2};
}

std::optional<Error> error_of_waiting(Transport& transport) {
  const auto end = Clock::now() + 60s;
  std::vector<std::byte> place(100);
  try {
    while (Clock::now() < end && !transport.channel(1).receive(place)) {
      transport.progress();
      std::this_thread::yield();
    }
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a provider without progress is probed, and is dead if the answer does not arrive") {
  ProgressWatchdog pulse(10s);
  Clock::time_point now{};
  const auto first = look_on(pulse, now, 100ms, 0);
  CHECK(first.verdict == ProgressWatchdog::Verdict::kAsk);
  CHECK(first.after == 1s);
  CHECK(pulse.look(now, 0) == ProgressWatchdog::Verdict::kAsk);  // until the probe is sent
  pulse.asked();
  const auto second = look_on(pulse, now, 100ms, 0);
  CHECK(second.verdict == ProgressWatchdog::Verdict::kDead);
  CHECK(second.after == 10s);
}

TEST_CASE("any completed operation is a sign of life") {
  ProgressWatchdog pulse(10s);
  Clock::time_point now{};
  CHECK(look_on(pulse, now, 100ms, 0).verdict == ProgressWatchdog::Verdict::kAsk);
  pulse.asked();
  now += 100ms;
  CHECK(pulse.look(now, 1) == ProgressWatchdog::Verdict::kFine);
  const auto again = look_on(pulse, now, 100ms, 1);
  CHECK(again.verdict == ProgressWatchdog::Verdict::kAsk);
  CHECK(again.after == 1s);
}

TEST_CASE("time without looks does not count as waiting time") {
  ProgressWatchdog pulse(10s);
  Clock::time_point now{};
  CHECK(look_on(pulse, now, 100ms, 0).verdict == ProgressWatchdog::Verdict::kAsk);
  pulse.asked();
  for (int i = 0; i < 19; ++i) {
    now += 1h;
    CHECK(pulse.look(now, 0) == ProgressWatchdog::Verdict::kFine);
  }
  now += 1h;
  CHECK(pulse.look(now, 0) == ProgressWatchdog::Verdict::kDead);
}

TEST_CASE(
    "an unknown client that kills the thread of sockets ends the wait with an error and a remedy") {
  if (!ofi::find_provider("sockets").info) {
    WARN("skipped: libfabric has no provider sockets here");
    return;
  }
  const auto store = make_local_store();
  OfiSettings settings;
  settings.provider = "sockets";
  std::thread other([&, settings] {
    const auto transport = make_ofi(request_of(1, store), settings);
    store->get("over", Clock::now() + 60s);
  });
  std::optional<Error> error;
  {
    settings.patience = 200ms;
    const auto transport = make_ofi(request_of(0, store), settings);
    send_garbage(*store, 0);
    error = error_of_waiting(*transport);
    store->set("over", "");
    other.join();
  }
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kSystem);
  CHECK_THAT(std::string(error->what()), ContainsSubstring("rank 0") &&
                                             ContainsSubstring("provider sockets") &&
                                             ContainsSubstring("KOLO_OFI_PROVIDER"));
}

}  // namespace kolo
