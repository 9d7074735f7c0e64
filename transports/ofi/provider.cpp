#include "transports/ofi/provider.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <algorithm>
#include <cstring>
#include <set>

#include "transports/error.h"
#include "transports/posix/socket.h"

namespace kolo::inline v0::ofi {

namespace {

// For -FI_ENODATA: the library tells no reason.
constexpr std::string_view kNotThere =
    "libfabric has none of that name (or FI_PROVIDER leaves it out), or the provider lacks "
    "reliable "
    "tagged messages in order, or its hardware or room (shm: in /dev/shm)";

// Shared memory of one shm endpoint in /dev/shm (1.17 and 2.1: 4.1 MiB).
constexpr std::size_t kRegionBytes = std::size_t{5} << 20;

Info hints_for(const std::string& name) {
  Info hints(library().dupinfo(nullptr));
  if (!hints) throw Error(ErrorCode::kSystem, kNoPeer, "libfabric has no memory for its hints");
  hints->caps = FI_TAGGED;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->cq_data_size = sizeof(std::uint64_t);
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->av_type = FI_AV_TABLE;
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (!name.empty()) {
    hints->fabric_attr->prov_name = ::strdup(name.c_str());
    hints->domain_attr->data_progress =
        known_provider(name).needs_automatic_progress ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
  }
  return hints;
}

// A provider's name in a list may be followed by its hooks.
bool is_named(const fi_info& info, std::string_view name) {
  const std::string_view full = info.fabric_attr->prov_name;
  return full == name || full.starts_with(fmt::format("{};ofi_hook", name));
}

posix::Address address_in(const fi_info& info) {
  const auto* const address = static_cast<const sockaddr*>(info.src_addr);
  if (address == nullptr || info.src_addrlen < sizeof(sockaddr)) return {};
  const bool has_one = info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN ||
                       info.addr_format == FI_SOCKADDR_IN6;
  if (!has_one || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return {};
  return {address, static_cast<socklen_t>(std::min(info.src_addrlen, sizeof(sockaddr_storage)))};
}

}  // namespace

KnownProvider known_provider(std::string_view name) {
  const auto* const known = std::find_if(std::begin(kKnownProviders), std::end(kKnownProviders),
                                         [name](const auto& each) { return each.name == name; });
  return known == std::end(kKnownProviders)
             ? KnownProvider{name, false, false, false, name.find("ofi_rxm") != name.npos, 64 << 10}
             : *known;
}

std::vector<std::string> providers_meant(std::string_view asked) {
  std::vector<std::string> names;
  for (const auto& known : kKnownProviders) {
    const bool is_one = known.name == asked || (asked == "tcp" && known.name == "tcp;ofi_rxm") ||
                        (asked.empty() && !known.is_within_host);
    if (is_one && major_version() >= known.since) names.emplace_back(known.name);
  }
  if (names.empty()) names.emplace_back(asked);
  return names;
}

bool may_use_rdma(std::string_view asked) {
  return !asked.empty() && std::ranges::none_of(kKnownProviders, [asked](const auto& known) {
    return known.name == asked;
  });
}

std::string provider_for(std::string_view asked) {
  for (const auto& name : providers_meant(asked)) {
    if (find_provider(name).info) return name;
  }
  return std::string(asked);
}

Found find_provider(const std::string& name) {
  const Library& fabric = library();
  const Info hints = hints_for(name);
  fi_info* list = nullptr;
  const int error = fabric.getinfo(kInterface, nullptr, nullptr, 0, hints.get(), &list);
  const Info owner(list);
  if (error == -FI_ENODATA) return {nullptr, std::string(kNotThere)};
  if (error != 0) return {nullptr, fabric.text_of(error)};
  const fi_info* best = nullptr;
  for (const fi_info* each = list; each != nullptr; each = each->next) {
    if (!is_named(*each, name)) continue;
    const auto address = address_in(*each);
    const bool is_far = address.length() == 0 || !address.is_loopback();
    if (best == nullptr) best = each;
    if (is_far) {
      best = each;
      break;
    }
  }
  if (best == nullptr) return {nullptr, std::string(kNotThere)};
  return {Info(fabric.dupinfo(best)), ""};
}

std::string why_no_room(std::string_view name, int ranks, std::uint64_t free_bytes) {
  const auto needed = static_cast<std::uint64_t>(ranks) * kRegionBytes;
  if (!known_provider(name).shares_regions || free_bytes >= needed) return {};
  return fmt::format(
      "it needs {} MiB of /dev/shm for {} ranks, and {} are free: make more room "
      "there (docker run --shm-size), or choose tcp (KOLO_OFI_PROVIDER)",
      needed >> 20, ranks, free_bytes >> 20);
}

std::uint64_t free_bytes_of_shared_memory() {
  struct statvfs room {};
  if (::statvfs("/dev/shm", &room) != 0)
    return ~std::uint64_t{0};  // the provider will report the error
  return std::uint64_t{room.f_bavail} * room.f_frsize;
}

std::vector<std::string> usable_providers() {
  std::vector<std::string> names;
  for (const auto& known : kKnownProviders) {
    if (major_version() < known.since) continue;
    if (find_provider(std::string(known.name)).info) names.emplace_back(known.name);
  }
  return names;
}

std::vector<std::string> all_providers() {
  const Info hints = hints_for("");
  fi_info* list = nullptr;
  library().getinfo(kInterface, nullptr, nullptr, 0, hints.get(), &list);
  const Info owner(list);
  std::set<std::string> names;
  for (const fi_info* each = list; each != nullptr; each = each->next)
    names.emplace(each->fabric_attr->prov_name);
  return {names.begin(), names.end()};
}

std::string host_of(const fi_info& info) {
  const auto address = address_in(info);
  return address.length() == 0 ? "" : address.host();
}

}  // namespace kolo::inline v0::ofi
