#include "transports/posix/host/addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "transports/posix/socket.h"

namespace kolo::inline v0::posix {

namespace {

// Any address behind the default route will do; these are reserved for documentation.
constexpr std::array<const char*, 2> kFarAway{"192.0.2.1", "2001:db8::1"};

constexpr std::array<std::string_view, 9> kBridges{"docker", "br-",   "virbr", "veth", "cni",
                                                   "podman", "lxcbr", "lxdbr", "vnet"};

enum class Place { kOrdinary, kLast, kLoopback };

// The local address on the route to `host`: the source address of a datagram. Sends nothing.
std::optional<Address> address_towards(const std::string& host) {
  std::string why;
  for (const auto& address : resolve(host, 9, why)) {
    const Descriptor socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.is_open() && ::connect(socket.get(), address.get(), address.length()) == 0)
      return local_address(socket);
  }
  return std::nullopt;
}

bool is_v6_link_local(const Address& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

Place place_of(const Address& address, std::string_view interface) {
  const auto is_named = [&](std::string_view begin) { return interface.starts_with(begin); };
  if (address.is_loopback()) return Place::kLoopback;
  if (std::ranges::any_of(kBridges, is_named)) return Place::kLast;
  return address.host().starts_with("169.254.") ? Place::kLast : Place::kOrdinary;
}

struct Candidate {
  std::string interface;
  std::string host;
  Place place;
  bool is_v6;
};

std::vector<Candidate> addresses_of_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<Candidate> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const Address address(each->ifa_addr,
                          family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (is_v6_link_local(address)) continue;
    found.push_back(
        {each->ifa_name, address.host(), place_of(address, each->ifa_name), family == AF_INET6});
  }
  std::ranges::stable_sort(found, {}, [](const Candidate& candidate) {
    return std::pair(candidate.place, candidate.is_v6);
  });
  return found;
}

}  // namespace

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> addresses;
  for (const Candidate& candidate : addresses_of_interfaces()) {
    addresses.push_back({candidate.interface, candidate.host, candidate.place == Place::kLoopback});
  }
  return addresses;
}

std::string loopback_host() {
  const std::vector<Candidate> candidates = addresses_of_interfaces();
  const auto has = [&candidates](const char* host) {
    return std::ranges::find(candidates, host, &Candidate::host) != candidates.end();
  };
  return !has("127.0.0.1") && has("::1") ? "::1" : "127.0.0.1";
}

std::vector<std::string> addresses_for_peers(const std::string& rendezvous_host, bool has_v6) {
  const std::vector<Candidate> candidates = addresses_of_interfaces();
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& host) {
    if (hosts.size() < kMostHostAddresses && std::ranges::find(hosts, host) == hosts.end())
      hosts.push_back(host);
  };
  const auto is_usable = [&](const std::optional<Address>& address) {
    return address && !address->is_loopback() && !is_v6_link_local(*address) &&
           (has_v6 || address->family() == AF_INET);
  };
  if (!rendezvous_host.empty()) {
    if (const auto address = address_towards(rendezvous_host); is_usable(address))
      add(address->host());
  }
  for (const char* far : kFarAway) {
    const auto address = address_towards(far);
    if (!is_usable(address)) continue;
    const std::string host = address->host();
    const auto known = std::ranges::find(candidates, host, &Candidate::host);
    if (known == candidates.end() || known->place == Place::kOrdinary) add(host);
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.place != Place::kLoopback && (has_v6 || !candidate.is_v6)) add(candidate.host);
  }
  return hosts;
}

}  // namespace kolo::inline v0::posix
