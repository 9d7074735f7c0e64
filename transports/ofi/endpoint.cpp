#include "transports/ofi/endpoint.h"

#include <fmt/format.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <array>

#include "transports/error.h"
#include "transports/ofi/provider.h"

namespace kolo::inline v0::ofi {

namespace {

constexpr std::size_t kEntries = 16;  // read from the queue at once
constexpr std::size_t kLongestName = 512;

}  // namespace

Endpoint::Endpoint(Info info, std::size_t operations, bool can_sleep) : info_(std::move(info)) {
  const Library& fabric = library();
  fid_fabric* opened_fabric = nullptr;
  require(fabric.fabric(info_->fabric_attr, &opened_fabric, nullptr), "opening its fabric");
  fids_.fabric.reset(opened_fabric);
  fid_domain* domain = nullptr;
  require(::fi_domain(fids_.fabric.get(), info_.get(), &domain, nullptr), "opening its domain");
  fids_.domain.reset(domain);
  fi_av_attr table{};
  table.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  require(::fi_av_open(fids_.domain.get(), &table, &addresses, nullptr),
          "opening its address table");
  fids_.addresses.reset(addresses);
  open_queue(operations, can_sleep);
  fid_ep* endpoint = nullptr;
  require(::fi_endpoint(fids_.domain.get(), info_.get(), &endpoint, nullptr),
          "opening an endpoint");
  fids_.endpoint.reset(endpoint);
  require(::fi_ep_bind(fids_.endpoint.get(), &fids_.addresses->fid, 0),
          "binding its address table");
  require(::fi_ep_bind(fids_.endpoint.get(), &fids_.queue->fid, FI_TRANSMIT | FI_RECV),
          "binding its queue");
  require(::fi_enable(fids_.endpoint.get()), "enabling the endpoint");
}

void Endpoint::open_queue(std::size_t operations, bool can_sleep) {
  fi_cq_attr attributes{};
  attributes.size = operations;
  attributes.format = FI_CQ_FORMAT_TAGGED;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  if (can_sleep && ::fi_cq_open(fids_.domain.get(), &attributes, &queue, nullptr) == 0) {
    fids_.queue.reset(queue);
    if (::fi_control(&fids_.queue->fid, FI_GETWAIT, &descriptor_) == 0) return;
    descriptor_ = -1;
    fids_.queue.reset();
  }
  attributes.wait_obj = FI_WAIT_NONE;
  require(::fi_cq_open(fids_.domain.get(), &attributes, &queue, nullptr),
          "opening its completion queue");
  fids_.queue.reset(queue);
}

void Endpoint::require(long result, const char* what) const {
  if (result == 0) return;
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("libfabric's provider {} fails in {}: {}", provider(), what,
                          library().text_of(result)));
}

std::string Endpoint::name() const {
  std::string name(kLongestName, '\0');
  std::size_t length = name.size();
  require(::fi_getname(&fids_.endpoint->fid, name.data(), &length), "naming its endpoint");
  name.resize(length);
  return name;
}

void Endpoint::know(const std::vector<std::string>& names) {
  fids_.peers.assign(names.size(), FI_ADDR_UNSPEC);
  // The provider reads as many bytes as its addresses have. Addresses in text form end in a zero,
  // as each std::string here does.
  const std::size_t length = name().size();
  const bool is_text = info_->addr_format == FI_ADDR_STR;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    const std::string& each = names[rank];
    const bool is_name = is_text ? each.size() <= kLongestName : each.size() == length;
    const auto known = is_name ? ::fi_av_insert(fids_.addresses.get(), each.data(), 1,
                                                &fids_.peers[rank], 0, nullptr)
                               : 0;
    if (known == 1) continue;
    throw Error(ErrorCode::kProtocol, static_cast<int>(rank),
                fmt::format("libfabric's provider {} does not take rank {}'s address: run the same "
                            "libfabric on every rank",
                            provider(), rank));
  }
}

Posted Endpoint::outcome(long result) {
  if (result == 0) return Posted::kYes;
  if (result == -FI_EAGAIN) return Posted::kNotNow;
  why_ = library().text_of(result);
  return Posted::kNever;
}

Posted Endpoint::send(int peer, std::span<const std::byte> data, std::uint64_t tag,
                      std::uint64_t word, Operation& operation) {
  return outcome(::fi_tsenddata(fids_.endpoint.get(), data.data(), data.size(), nullptr, word,
                                fids_.peers[static_cast<std::size_t>(peer)], tag,
                                &operation.context));
}

Posted Endpoint::inject(int peer, std::span<const std::byte> data, std::uint64_t tag,
                        std::uint64_t word) {
  return outcome(::fi_tinjectdata(fids_.endpoint.get(), data.data(), data.size(), word,
                                  fids_.peers[static_cast<std::size_t>(peer)], tag));
}

Posted Endpoint::receive(std::span<std::byte> into, std::uint64_t tag, Operation& operation) {
  operation.is_receive = true;
  const Posted posted = outcome(::fi_trecv(fids_.endpoint.get(), into.data(), into.size(), nullptr,
                                           FI_ADDR_UNSPEC, tag, 0, &operation.context));
  operation.is_under_way = posted == Posted::kYes;
  receives_ += operation.is_under_way ? 1 : 0;
  return posted;
}

void Endpoint::cancel(Operation& operation) {
  if (operation.is_under_way) ::fi_cancel(&fids_.endpoint->fid, &operation.context);
}

void Endpoint::over(Operation& operation) {
  receives_ -= operation.is_under_way ? 1 : 0;
  operation.is_under_way = false;
}

void Endpoint::poll() {
  if (!is_open()) return;
  std::array<fi_cq_tagged_entry, kEntries> entries;
  while (true) {
    const ssize_t got = ::fi_cq_read(fids_.queue.get(), entries.data(), entries.size());
    if (got == -FI_EAGAIN) return;
    if (got == -FI_EAVAIL) {
      poll_error();
      continue;
    }
    if (got < 0) {
      throw Error(ErrorCode::kSystem, kNoPeer,
                  fmt::format("libfabric's provider {}: its completion queue fails: {}", provider(),
                              library().text_of(got)));
    }
    for (ssize_t i = 0; i < got; ++i) {
      const auto& entry = entries[static_cast<std::size_t>(i)];
      auto& operation = *static_cast<Operation*>(entry.op_context);
      ++done_;
      over(operation);
      operation.owner->done(operation, operation.is_receive ? entry.len : 0,
                            operation.is_receive ? entry.data : 0);
    }
    if (static_cast<std::size_t>(got) < entries.size()) return;
  }
}

void Endpoint::poll_error() {
  fi_cq_err_entry entry{};
  if (::fi_cq_readerr(fids_.queue.get(), &entry, 0) <= 0) return;
  ++done_;
  auto* const operation = static_cast<Operation*>(entry.op_context);
  if (operation == nullptr) return;
  over(*operation);
  if (entry.err == FI_ECANCELED) return;
  operation->owner->failed(*operation, library().text_of(entry.err));
}

bool Endpoint::is_quiet() {
  fid* queue = &fids_.queue->fid;
  return ::fi_trywait(fids_.fabric.get(), &queue, 1) == 0;
}

}  // namespace kolo::inline v0::ofi
