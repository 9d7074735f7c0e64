#include "transports/conformance/scenarios.h"

#include <poll.h>
#include <unistd.h>
#include <functional>
#include <stdexcept>
#include <vector>

#include "transports/base/waiting.h"
#include "transports/error.h"

namespace kolo::inline v0::conformance {

namespace {

using Bytes = std::vector<std::byte>;

void be_ready(Store& job) { job.set("ready", ""); }

[[noreturn]] void wait_for_the_end() {
  while (true) ::pause();
}

// Makes progress until `is_done()`; throws if the job has failed.
void until(Transport& transport, Store& job, WaitPolicy& policy,
           const std::function<bool()>& is_done) {
  while (!is_done()) {
    transport.progress();
    if (!policy.pause(transport, job, Clock::now() + std::chrono::seconds(30))) return;
  }
  policy.moved();
}

WaitPolicy make_policy(WaitKind kind = WaitKind::kYield) {
  Settings settings;
  settings.wait = kind;
  settings.spin = std::chrono::microseconds(50);
  return WaitPolicy(kScenarioSize, 0, settings);
}

void be_killed_before_the_transport_is_made(std::string_view, const TransportRequest&, Store& job) {
  be_ready(job);
  wait_for_the_end();
}

void be_killed_idle(std::string_view name, const TransportRequest& request, Store& job) {
  const auto transport = make_transport(name, request);
  be_ready(job);
  wait_for_the_end();
}

void be_killed_asleep(std::string_view name, const TransportRequest& request, Store& job) {
  const auto transport = make_transport(name, request);
  while (transport->descriptor() >= 0 && !transport->arm()) transport->progress();
  be_ready(job);
  pollfd watched{transport->descriptor(), POLLIN, 0};
  while (true) ::poll(&watched, 1, -1);
}

void be_killed_sending(std::string_view name, const TransportRequest& request, Store& job) {
  const auto transport = make_transport(name, request);
  auto policy = make_policy();
  const Bytes data(transport->channel(0).capabilities().segment_bytes);
  for (int i = 0;; ++i) {
    for (int peer = 0; peer < kVictim; ++peer) {
      until(*transport, job, policy, [&] { return transport->channel(peer).send(data); });
    }
    if (i == 3) be_ready(job);
  }
}

void be_killed_receiving(std::string_view name, const TransportRequest& request, Store& job) {
  const auto transport = make_transport(name, request);
  auto policy = make_policy();
  const std::size_t bytes = transport->channel(0).capabilities().segment_bytes;
  for (int i = 0;; ++i) {
    for (int peer = 0; peer < kVictim; ++peer) {
      until(*transport, job, policy,
            [&] { return transport->channel(peer).view(bytes) != nullptr; });
      if (i == 3 && peer == 1) be_ready(job);  // with a view in hand
      transport->channel(peer).release();
    }
  }
}

void be_killed_with_all_sent(std::string_view name, const TransportRequest& request, Store& job) {
  const auto transport = make_transport(name, request);
  const Bytes data(transport->channel(0).capabilities().segment_bytes);
  for (int peer = 0; peer < kVictim; ++peer) {
    while (transport->channel(peer).send(data)) {
    }
  }
  be_ready(job);
  wait_for_the_end();
}

// Below, buffers are declared before the transport, which may use them until it is closed.

void receive_for_ever(std::string_view name, const TransportRequest& request, Store& job) {
  Bytes into;
  const auto transport = make_transport(name, request);
  auto policy = make_policy();
  Channel& channel = transport->channel(kVictim);
  into.resize(channel.capabilities().segment_bytes);
  while (true) until(*transport, job, policy, [&] { return channel.receive(into); });
}

void receive_asleep(std::string_view name, const TransportRequest& request, Store& job) {
  Bytes into(8);
  const auto transport = make_transport(name, request);
  auto policy = make_policy(WaitKind::kBlock);
  until(*transport, job, policy, [&] { return transport->channel(kVictim).receive(into); });
}

void send_for_ever(std::string_view name, const TransportRequest& request, Store& job) {
  Bytes data;
  const auto transport = make_transport(name, request);
  auto policy = make_policy();
  Channel& channel = transport->channel(kVictim);
  data.resize(channel.capabilities().segment_bytes);
  while (true) until(*transport, job, policy, [&] { return channel.send(data); });
}

constexpr Scenario kScenarios[] = {
    {"before its transport is made", be_killed_before_the_transport_is_made, receive_asleep},
    {"idle", be_killed_idle, receive_for_ever},
    {"idle, awaited by sleepers", be_killed_idle, receive_asleep},
    {"asleep", be_killed_asleep, receive_for_ever},
    {"sending", be_killed_sending, receive_for_ever},
    {"receiving", be_killed_receiving, send_for_ever},
    {"with all sent", be_killed_with_all_sent, receive_for_ever},
};

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

const Scenario& scenario_named(std::string_view name) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.name == name) return scenario;
  }
  throw std::invalid_argument("no such scenario");
}

std::string survive(const Scenario& scenario, std::string_view transport, int rank, Store& job,
                    std::shared_ptr<Store> store) {
  const TransportRequest request{
      rank, kScenarioSize, std::move(store), Clock::now() + std::chrono::seconds(60),
      0,    kScenarioSize};
  try {
    scenario.survivor(transport, request, job);
  } catch (const Error& error) {
    const std::string text = error.what();
    job.post_failure(text);  // as the first rank with an error does, before it closes anything
    const bool is_right_code =
        error.code() == ErrorCode::kPeerLost || error.code() == ErrorCode::kAborted;
    return is_right_code && text.find("rank 2") != std::string::npos ? "" : text;
  }
  return "rank " + std::to_string(rank) + " did not learn that the victim is lost";
}

void finish_early(std::string_view name, const TransportRequest& request) {
  const auto transport = make_transport(name, request);
  if (request.rank != kVictim) return;
  Channel& channel = transport->channel(0);
  for (int i = 0; i < 2; ++i) {
    std::byte* slot = channel.reserve(1000);
    for (int k = 0; k < 1000; ++k) slot[k] = static_cast<std::byte>(i + k);
    channel.commit();
  }
  while (!channel.is_drained()) transport->progress();
}

}  // namespace kolo::inline v0::conformance
