#include "transports/ofi/bootstrap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <optional>
#include <thread>

#include "transports/base/address_text.h"
#include "transports/error.h"
#include "transports/ofi/channel.h"
#include "transports/ofi/provider.h"
#include "transports/posix/host/identity.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0::ofi {

namespace {

constexpr int kVersion = 2;

// Pause between two looks at the store.
constexpr auto kPause = std::chrono::microseconds(200);

// Offer of a rank, one field a line: its host, the requested provider, the usable providers.
struct Offer {
  std::string host;
  std::string asked;
  std::string usable;   // " shm sockets "
  std::string why_not;  // why it cannot use the requested provider
};

std::string text_of(const Offer& offer) {
  return fmt::format("{}\n{}\n{}\n{}", offer.host, offer.asked, offer.usable, offer.why_not);
}

Offer offer_from(const std::string& text) {
  auto lines = stream_of(text);
  Offer offer;
  std::getline(lines, offer.host);
  std::getline(lines, offer.asked);
  std::getline(lines, offer.usable);
  std::getline(lines, offer.why_not);
  return offer;
}

Offer own_offer(const TransportRequest& request, const std::string& asked) {
  Offer offer{posix::host_identity() + "/" + request.host_id, asked, " ", ""};
  offer.why_not = why_no_library();
  if (!offer.why_not.empty()) return offer;
  for (const auto& name : providers_meant(asked)) {
    std::string why_not = find_provider(name).why_not;
    if (why_not.empty()) why_not = why_no_room(name, request.size, free_bytes_of_shared_memory());
    if (why_not.empty()) {
      offer.usable += name + " ";
    } else {
      offer.why_not = why_not;
    }
  }
  if (offer.usable != " ") {
    offer.why_not.clear();
  } else if (asked.empty()) {
    offer.why_not = fmt::format(
        "it has none of {} (fi_info lists its providers), or FI_PROVIDER leaves them out",
        fmt::join(providers_meant(asked), ", "));
  }
  return offer;
}

[[noreturn]] void fail_without(int own, int rank, const Offer& offer, const std::string& provider) {
  throw Error(
      ErrorCode::kUnavailable, rank,
      by_rank(own,
              fmt::format(
                  "rank {} does not have libfabric's provider {}: {}; KOLO_OFI_PROVIDER chooses "
                  "one of those that kolo-bench transports lists on the machine",
                  rank, provider, offer.why_not.empty() ? "no data" : offer.why_not)));
}

void check_asked(const TransportRequest& request, const std::vector<Offer>& offers) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& offer = offers[rank];
    if (offer.asked != offers[0].asked) {
      throw Error(
          ErrorCode::kMismatch, static_cast<int>(rank),
          fmt::format("rank {}: rank 0 was asked for libfabric's provider '{}', rank {} for '{}' "
                      "(KOLO_OFI_PROVIDER): give the same to every rank",
                      request.rank, offers[0].asked, rank, offer.asked));
    }
  }
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (!offers[rank].why_not.empty()) {
      fail_without(request.rank, static_cast<int>(rank), offers[rank],
                   offers[0].asked.empty() ? "(any)" : offers[0].asked);
    }
    if (known_provider(offers[0].asked).is_within_host && offers[rank].host != offers[0].host) {
      throw Error(ErrorCode::kUnavailable, static_cast<int>(rank),
                  fmt::format("rank {}: libfabric's provider {} works within one host, and rank {} "
                              "is on a different host than rank 0: choose tcp (KOLO_OFI_PROVIDER)",
                              request.rank, offers[0].asked, rank));
    }
  }
}

}  // namespace

void fail_if_late(const TransportRequest& request, int peer, const std::string& what) {
  if (const auto failure = request.store->failure())
    throw Error(ErrorCode::kAborted, kNoPeer, *failure);
  if (Clock::now() <= request.deadline) return;
  throw Error(ErrorCode::kDeadline, peer,
              fmt::format("rank {}: rank {} {} (ofi): it hangs or has ended, or its network blocks "
                          "connections; its own output may say why",
                          request.rank, peer, what));
}

std::string to_text(const EndpointAddress& address) {
  if (!address.why_not.empty()) return "- " + address.why_not;
  return fmt::format("{} {} {} {} {} {} {} {}", kVersion, address.provider, to_hex(address.name),
                     address.segment_bytes, address.window, address.token, address.process,
                     kolo::to_text(address.liveness));
}

EndpointAddress address_from_text(const std::string& text, int rank) {
  EndpointAddress address;
  if (text.starts_with("- ")) {
    address.why_not = text.substr(2);
    return address;
  }
  auto words = stream_of(text);
  int version = 0;
  std::string name;
  std::string rest;
  if (words >> version >> address.provider >> name >> address.segment_bytes >> address.window >>
      address.token >> address.process)
    std::getline(words, rest);
  const auto bytes = from_hex(name);
  const auto liveness = liveness_address_from_text(rest);
  const bool is_window = address.window >= kSlots && address.window <= kLongestWindow;
  if (version != kVersion || !bytes || bytes->empty() || !is_window || !liveness) {
    throw Error(
        ErrorCode::kProtocol, rank,
        fmt::format("rank {} has published no address of ofi's version {}: run the same build "
                    "of kolo on every rank",
                    rank, kVersion));
  }
  address.name = *bytes;
  address.liveness = *liveness;
  return address;
}

std::vector<std::string> agree_on_providers(const TransportRequest& request,
                                            const std::string& asked) {
  const auto texts = exchange(*request.store, request.rank, request.size, "offer",
                              text_of(own_offer(request, asked)), request.deadline,
                              "agree on a provider of libfabric (ofi)");
  std::vector<Offer> offers;
  for (const auto& text : texts) offers.push_back(offer_from(text));
  check_asked(request, offers);
  std::vector<std::string> of_all;
  for (const auto& known : kKnownProviders) {  // includes providers that this rank lacks
    const std::string word = fmt::format(" {} ", known.name);
    const bool all_have = std::ranges::all_of(
        offers, [&](const Offer& offer) { return offer.usable.find(word) != std::string::npos; });
    if (all_have) of_all.emplace_back(known.name);
  }
  if (!asked.empty() && of_all.size() > 1) of_all.resize(1);
  if (!of_all.empty()) return of_all;
  if (std::ranges::all_of(
          offers, [&](const Offer& offer) { return offer.usable == fmt::format(" {} ", asked); }))
    return {asked};
  std::string have;
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    have += fmt::format("{} rank {}:{}", rank == 0 ? "" : ",", rank, offers[rank].usable);
  throw Error(
      ErrorCode::kUnavailable, kNoPeer,
      fmt::format(
          "rank {}: none of libfabric's providers works on all ranks (ofi);{}; install the same "
          "libfabric on every host, or use tcp",
          request.rank, have));
}

std::vector<EndpointAddress> exchange_addresses(const TransportRequest& request,
                                                const EndpointAddress& own, std::size_t attempt) {
  const std::string key = attempt == 0 ? "address" : fmt::format("address of attempt {}", attempt);
  const auto texts = exchange(*request.store, request.rank, request.size, key, to_text(own),
                              request.deadline, "open its endpoint (ofi)");
  std::vector<EndpointAddress> addresses;
  for (int rank = 0; rank < request.size; ++rank) {
    addresses.push_back(address_from_text(texts[static_cast<std::size_t>(rank)], rank));
    const EndpointAddress& address = addresses.back();
    if (address.why_not.empty() && own.why_not.empty() &&
        address.segment_bytes != own.segment_bytes) {
      throw Error(
          ErrorCode::kMismatch, rank,
          fmt::format("rank {}: rank {} has segments of {} bytes, this rank {} (ofi): set the same "
                      "on every rank",
                      request.rank, rank, address.segment_bytes, own.segment_bytes));
    }
  }
  return addresses;
}

std::optional<Unopened> unopened_in(const std::vector<EndpointAddress>& addresses) {
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    if (!addresses[rank].why_not.empty())
      return Unopened{static_cast<int>(rank), addresses[rank].why_not};
  }
  return std::nullopt;
}

void fail_unopened(const TransportRequest& request, const std::vector<Unopened>& attempts) {
  std::string text;
  for (const Unopened& attempt : attempts) {
    text += fmt::format("{}rank {} has no endpoint (ofi): {}", text.empty() ? "" : "; then ",
                        attempt.rank, attempt.why_not);
  }
  throw Error(ErrorCode::kUnavailable, attempts.back().rank,
              by_rank(request.rank,
                      text + "; FI_LOG_LEVEL=warn makes libfabric say more; check FI_PROVIDER and "
                             "the other FI_ variables, or choose another provider that all ranks "
                             "have (KOLO_OFI_PROVIDER=...; kolo-bench transports lists those of a "
                             "machine)"));
}

void wait_for_all(const TransportRequest& request, const std::function<void()>& progress) {
  const auto key_of = [](int rank) { return fmt::format("connected/{}", rank); };
  request.store->set(key_of(request.rank), "");
  for (int peer = 0; peer < request.size;) {
    if (request.store->try_get(key_of(peer))) {
      ++peer;
      continue;
    }
    fail_if_late(request, peer, "has not connected to all ranks yet");
    progress();
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace kolo::inline v0::ofi
