#include "test/transports/ofi/fake_libfabric.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace kolo::test {

namespace {

// tag bit of the messages that are no segments
constexpr std::uint64_t kOfAll = std::uint64_t{1} << 63;

// An fi_info with all structs that it points to.
struct Whole {
  fi_info info{};
  fi_tx_attr tx{};
  fi_rx_attr rx{};
  fi_ep_attr endpoint{};
  fi_domain_attr domain{};
  fi_fabric_attr fabric{};
};

void complete(const FakeFabric::Receive& receive, const FakeFabric::Message& message) {
  const bool fits = message.data.size() <= receive.into.size();
  if (fits && !message.data.empty())
    std::memcpy(receive.into.data(), message.data.data(), message.data.size());
  fake_fabric().completions.push_back(
      {receive.context, fits ? 0 : FI_ETRUNC, message.data.size(), message.word});
}

ssize_t post_receive(fid_ep*, void* into, size_t bytes, void*, fi_addr_t, std::uint64_t tag,
                     std::uint64_t, void* context) {
  FakeFabric& fabric = fake_fabric();
  if (fabric.refuses != 0) return -fabric.refuses;
  const FakeFabric::Receive receive{context, {static_cast<std::byte*>(into), bytes}, tag};
  if ((tag & kOfAll) != 0 && !fabric.early_words.empty()) {
    complete(receive, {tag, fabric.early_words.back(), {}});
    fabric.early_words.pop_back();
    return 0;
  }
  const auto waiting =
      std::ranges::find(fabric.unexpected, tag, [](const auto& each) { return each.tag; });
  if (waiting == fabric.unexpected.end()) {
    fabric.receives.push_back(receive);
    return 0;
  }
  complete(receive, *waiting);
  fabric.unexpected.erase(waiting);
  return 0;
}

ssize_t post(const void* data, std::size_t bytes, std::uint64_t word, fi_addr_t to,
             std::uint64_t tag, void* context) {
  FakeFabric& fabric = fake_fabric();
  if (fabric.refuses != 0) return -fabric.refuses;
  const auto* const place = static_cast<const std::byte*>(data);
  FakeFabric::Sent sent{context, {}, place, to, tag, word, context == nullptr};
  if (bytes > 0) sent.data.assign(place, place + bytes);
  fabric.sent.push_back(std::move(sent));
  return 0;
}

ssize_t post_send(fid_ep*, const void* data, size_t bytes, void*, std::uint64_t word, fi_addr_t to,
                  std::uint64_t tag, void* context) {
  return post(data, bytes, word, to, tag, context);
}

ssize_t inject(fid_ep*, const void* data, size_t bytes, std::uint64_t word, fi_addr_t to,
               std::uint64_t tag) {
  FakeFabric& fabric = fake_fabric();
  if (fabric.refusals > 0) return --fabric.refusals, -FI_EAGAIN;
  if (bytes > fabric.inject_bytes) return -FI_EINVAL;
  return post(data, bytes, word, to, tag, nullptr);
}

ssize_t cancel(fid*, void* context) {
  FakeFabric& fabric = fake_fabric();
  const auto posted =
      std::ranges::find(fabric.receives, context, [](const auto& each) { return each.context; });
  if (posted == fabric.receives.end()) return -FI_ENOENT;
  fabric.receives.erase(posted);
  fabric.completions.push_back({context, FI_ECANCELED, 0, 0});
  return 0;
}

ssize_t read_queue(fid_cq*, void* into, size_t most) {
  FakeFabric& fabric = fake_fabric();
  if (fabric.queue_error != 0) return -fabric.queue_error;
  auto* const entries = static_cast<fi_cq_tagged_entry*>(into);
  std::size_t got = 0;
  while (got < most && !fabric.completions.empty() && fabric.completions.front().error == 0) {
    const auto& next = fabric.completions.front();
    entries[got++] = {next.context, 0, next.bytes, nullptr, next.word, 0};
    fabric.completions.pop_front();
  }
  if (got > 0) return static_cast<ssize_t>(got);
  return fabric.completions.empty() ? -FI_EAGAIN : -FI_EAVAIL;
}

ssize_t read_queue_error(fid_cq*, fi_cq_err_entry* entry, std::uint64_t) {
  FakeFabric& fabric = fake_fabric();
  if (fabric.completions.empty()) return -FI_EAGAIN;
  entry->op_context = fabric.completions.front().context;
  entry->err = fabric.completions.front().error;
  fabric.completions.pop_front();
  return 1;
}

int take_names(fid_av*, const void*, size_t count, fi_addr_t* addresses, std::uint64_t, void*) {
  static fi_addr_t next = 0;
  for (size_t i = 0; i < count; ++i) addresses[i] = next++;
  return static_cast<int>(count);
}

int tell_name(fid*, void* name, size_t* bytes) {
  constexpr std::string_view kName = "played";
  *bytes = std::min(*bytes, kName.size());
  std::memcpy(name, kName.data(), *bytes);
  return 0;
}

int close_endpoint(fid*) {
  fake_fabric().receives.clear();
  return 0;
}

int close_other(fid*) { return 0; }

int bind(fid*, fid*, std::uint64_t) { return 0; }

int control(fid*, int command, void* into) {
  if (command == FI_ENABLE) return 0;
  if (command != FI_GETWAIT || fake_fabric().descriptor < 0) return -FI_ENOSYS;
  *static_cast<int*>(into) = fake_fabric().descriptor;
  return 0;
}

int sleep_if_quiet(fid_fabric*, fid**, int) {
  return fake_fabric().completions.empty() ? 0 : -FI_EAGAIN;
}

// The handles, and their tables of functions.
struct Handles {
  fi_ops calls{};
  fi_ops endpoint_calls{};
  fi_ops_ep endpoint_own{};
  fi_ops_cm endpoint_names{};
  fi_ops_tagged endpoint_tagged{};
  fi_ops_cq queue_own{};
  fi_ops_av addresses_own{};
  fi_ops_domain domain_own{};
  fi_ops_fabric fabric_own{};
  fid_ep endpoint{};
  fid_cq queue{};
  fid_av addresses{};
  fid_domain domain{};
  fid_fabric fabric{};

  Handles();
};

Handles& handles() {
  static Handles all;
  return all;
}

Handles::Handles() {
  calls.size = endpoint_calls.size = sizeof(fi_ops);
  calls.close = close_other;
  calls.control = endpoint_calls.control = control;
  endpoint_calls.close = close_endpoint;
  endpoint_calls.bind = bind;
  endpoint_own.cancel = cancel;
  endpoint_names.getname = tell_name;
  endpoint_tagged.recv = post_receive;
  endpoint_tagged.senddata = post_send;
  endpoint_tagged.injectdata = inject;
  queue_own.read = read_queue;
  queue_own.readerr = read_queue_error;
  addresses_own.insert = take_names;
  domain_own.av_open = [](fid_domain*, fi_av_attr*, fid_av** opened, void*) {
    *opened = &handles().addresses;
    return 0;
  };
  domain_own.cq_open = [](fid_domain*, fi_cq_attr*, fid_cq** opened, void*) {
    *opened = &handles().queue;
    return 0;
  };
  domain_own.endpoint = [](fid_domain*, fi_info*, fid_ep** opened, void*) {
    *opened = &handles().endpoint;
    return 0;
  };
  fabric_own.domain = [](fid_fabric*, fi_info*, fid_domain** opened, void*) {
    *opened = &handles().domain;
    return 0;
  };
  fabric_own.trywait = sleep_if_quiet;
  endpoint.fid.ops = &endpoint_calls;
  queue.fid.ops = addresses.fid.ops = domain.fid.ops = fabric.fid.ops = &calls;
  endpoint.ops = &endpoint_own;
  endpoint.cm = &endpoint_names;
  endpoint.tagged = &endpoint_tagged;
  queue.ops = &queue_own;
  addresses.ops = &addresses_own;
  domain.ops = &domain_own;
  fabric.ops = &fabric_own;
}

}  // namespace

FakeFabric& fake_fabric() {
  static FakeFabric fabric;
  return fabric;
}

void FakeFabric::bring(Message message) {
  const auto posted =
      std::ranges::find(receives, message.tag, [](const auto& each) { return each.tag; });
  if (posted == receives.end()) {
    unexpected.push_back(std::move(message));
    return;
  }
  complete(*posted, message);
  receives.erase(posted);
}

void FakeFabric::finish(std::size_t index, int error) {
  sent[index].has_left = true;
  completions.push_back({sent[index].context, error, 0, 0});
}

}  // namespace kolo::test

using namespace kolo::test;

extern "C" {

std::uint32_t fi_version() { return FI_VERSION(1, 17); }

const char* fi_strerror(int) { return "an error"; }

fi_info* fi_dupinfo(const fi_info* info) {
  auto whole = std::make_unique<Whole>();
  if (info != nullptr) {
    whole->tx = *info->tx_attr;
    whole->rx = *info->rx_attr;
    whole->endpoint = *info->ep_attr;
    const char* const name = info->fabric_attr->prov_name;
    if (name != nullptr) whole->fabric.prov_name = ::strdup(name);
  }
  whole->info.tx_attr = &whole->tx;
  whole->info.rx_attr = &whole->rx;
  whole->info.ep_attr = &whole->endpoint;
  whole->info.domain_attr = &whole->domain;
  whole->info.fabric_attr = &whole->fabric;
  return &whole.release()->info;  // its first member
}

void fi_freeinfo(fi_info* info) {
  const std::unique_ptr<Whole> whole(reinterpret_cast<Whole*>(info));
  if (whole) std::free(whole->fabric.prov_name);
}

int fi_getinfo(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info* hints,
               fi_info** info) {
  const FakeFabric& played = fake_fabric();
  const char* const name = hints->fabric_attr->prov_name;
  if (name == nullptr || played.provider != name) return -FI_ENODATA;
  *info = fi_dupinfo(hints);
  (*info)->tx_attr->inject_size = played.inject_bytes;
  (*info)->tx_attr->size = (*info)->rx_attr->size = played.queue_entries;
  (*info)->ep_attr->max_msg_size = std::size_t{1} << 30;
  return 0;
}

int fi_fabric(fi_fabric_attr*, fid_fabric** fabric, void*) {
  *fabric = &handles().fabric;
  return 0;
}
}
