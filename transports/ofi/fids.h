// Open objects of a provider, closed in the right order.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <memory>
#include <vector>

namespace kolo::inline v0::ofi {

template <typename Fid>
struct CloseFid {
  void operator()(Fid* fid) const { ::fi_close(&fid->fid); }
};
template <typename Fid>
using OwnedFid = std::unique_ptr<Fid, CloseFid<Fid>>;

struct Fids {
  OwnedFid<fid_fabric> fabric;
  OwnedFid<fid_domain> domain;
  OwnedFid<fid_av> addresses;
  OwnedFid<fid_cq> queue;
  OwnedFid<fid_ep> endpoint;
  std::vector<fi_addr_t> peers;  // in `addresses`

  void close() noexcept {
    endpoint.reset();
    queue.reset();
    addresses.reset();
    domain.reset();
    fabric.reset();
  }
};

}  // namespace kolo::inline v0::ofi
