// Bare libfabric, the reference for the transport ofi.
//
// Each message is one tagged message, received in place, with as many receives posted ahead as
// libfabric programs post. Short messages are injected. There is no credit, no liveness check, and
// no order except the provider's: it serves two ranks that both know what comes.
#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "bench/p2p/pipe.h"
#include "transports/error.h"
#include "transports/ofi/fids.h"
#include "transports/ofi/provider.h"
#include "transports/settings.h"
#include "transports/store/all_gather.h"

namespace kolo::bench {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kDepth = 64;  // operations in flight per direction
constexpr int kPolls = 500;         // without progress, before the core is yielded
constexpr int kPollsPerClock = 10'000;

std::string provider_of(const PipeRequest& request) {
  if (!request.library_provider.empty()) return request.library_provider;
  if (request.transport == "shm" || request.transport == "tcp")
    return ofi::provider_for(request.transport);
  return ofi::provider_for(read_settings().ofi_provider);  // the one of the transport ofi
}

class LibfabricPipe final : public Pipe {
 public:
  explicit LibfabricPipe(const PipeRequest& request)
      : rank_(request.rank),
        timeout_(request.timeout),
        provider_(provider_of(request)),
        store_(prefixed(request.store, "libfabric/" + provider_ + "/")) {
    open();
    meet();
  }

  // An endpoint over shm must not close while the peer's addresses refer to it.
  ~LibfabricPipe() override {
    if (!fids_.peers.empty())
      ::fi_av_remove(fids_.addresses.get(), fids_.peers.data(), fids_.peers.size(), 0);
    try {
      meet_by(*this, *store_, rank_, "closing", Clock::now() + timeout_);
    } catch (const std::exception&) {  // the other rank is gone
    }
    fids_.close();
  }

  std::string library() const override { return "libfabric"; }
  std::string level() const override { return "library"; }
  std::string transport() const override { return provider_; }

  bool needs_calls() const override { return true; }
  void get_on() override { poll(); }

  void exchange(const Messages& out, const Messages& in) override {
    std::size_t posted_out = 0;
    std::size_t posted_in = 0;
    done_out_ = done_in_ = 0;
    int vain = 0;
    const auto begin = Clock::now();
    while (done_out_ < out.count || done_in_ < in.count) {
      bool has_moved = post_receives(in, posted_in);
      has_moved |= post_sends(out, posted_out);
      has_moved |= poll();
      vain = has_moved ? 0 : vain + 1;
      if (vain % kPolls == kPolls - 1) ::sched_yield();
      if (vain % kPollsPerClock == kPollsPerClock - 1 && Clock::now() - begin > timeout_)
        throw Error(ErrorCode::kDeadline, 1 - rank_,
                    "timed out waiting for the other rank over bare libfabric");
    }
  }

 private:
  void open() {
    auto found = ofi::find_provider(provider_);
    if (!found.info) {
      throw Error(ErrorCode::kUnavailable, kNoPeer,
                  fmt::format("libfabric's provider {}: {}", provider_, found.why_not));
    }
    info_ = std::move(found.info);
    fid_fabric* fabric = nullptr;
    require(ofi::library().fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fids_.fabric.reset(fabric);
    fid_domain* domain = nullptr;
    require(::fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
    fids_.domain.reset(domain);
    fi_av_attr table{};
    table.type = FI_AV_TABLE;
    fid_av* addresses = nullptr;
    require(::fi_av_open(domain, &table, &addresses, nullptr), "fi_av_open");
    fids_.addresses.reset(addresses);
    fi_cq_attr attributes{};
    attributes.size = 2 * kDepth + 8;
    attributes.format = FI_CQ_FORMAT_TAGGED;
    fid_cq* queue = nullptr;
    require(::fi_cq_open(domain, &attributes, &queue, nullptr), "fi_cq_open");
    fids_.queue.reset(queue);
    fid_ep* endpoint = nullptr;
    require(::fi_endpoint(domain, info_.get(), &endpoint, nullptr), "fi_endpoint");
    fids_.endpoint.reset(endpoint);
    require(::fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
    require(::fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    require(::fi_enable(endpoint), "fi_enable");
  }

  void meet() {
    std::string name(512, '\0');
    std::size_t length = name.size();
    require(::fi_getname(&fids_.endpoint->fid, name.data(), &length), "fi_getname");
    name.resize(length);
    for (const std::string& each : exchange_texts("name", name)) {
      fids_.peers.push_back(FI_ADDR_UNSPEC);
      if (::fi_av_insert(fids_.addresses.get(), each.data(), 1, &fids_.peers.back(), 0, nullptr) !=
          1)
        throw Error(ErrorCode::kProtocol, 1 - rank_, "libfabric does not take the other's address");
    }
    std::byte word{};
    this->exchange({&word, 1, 1}, {});
    std::byte got{};
    this->exchange({}, {&got, 1, 1});
    meet_by(*this, *store_, rank_, "met",
            Clock::now() + timeout_);  // keep progressing: the other rank may need answers
  }

  std::vector<std::string> exchange_texts(const char* key, const std::string& text) {
    return kolo::exchange(*store_, rank_, kRanks, key, text, Clock::now() + timeout_,
                          "meet over bare libfabric");
  }

  void require(long result, const char* call) const {
    if (result == 0) return;
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("libfabric's provider {}: {}: {}", provider_, call,
                            ofi::library().text_of(result)));
  }

  // True if the call was accepted; false for "again".
  bool is_taken(long result, const char* call) const {
    if (result == -FI_EAGAIN) return false;
    require(result, call);
    return true;
  }

  bool post_receives(const Messages& in, std::size_t& posted) {
    const std::size_t before = posted;
    while (posted < in.count && posted - done_in_ < kDepth) {
      auto& context = receives_[posted % kDepth];
      const long result = ::fi_trecv(fids_.endpoint.get(), in.first + posted * in.bytes, in.bytes,
                                     nullptr, FI_ADDR_UNSPEC, kTag, 0, &context);
      if (!is_taken(result, "fi_trecv")) break;
      ++posted;
    }
    return posted > before;
  }

  bool post_sends(const Messages& out, std::size_t& posted) {
    const std::size_t before = posted;
    const fi_addr_t peer = fids_.peers[static_cast<std::size_t>(1 - rank_)];
    const bool is_short = out.bytes <= info_->tx_attr->inject_size;
    while (posted < out.count && posted - done_out_ < kDepth) {
      const std::byte* const message = out.first + posted * out.bytes;
      auto& context = sends_[posted % kDepth];
      const long result =
          is_short
              ? ::fi_tinject(fids_.endpoint.get(), message, out.bytes, peer, kTag)
              : ::fi_tsend(fids_.endpoint.get(), message, out.bytes, nullptr, peer, kTag, &context);
      if (!is_taken(result, "fi_tsend")) break;
      ++posted;
      if (is_short) ++done_out_;
    }
    return posted > before;
  }

  bool poll() {
    std::array<fi_cq_tagged_entry, 16> entries;
    const ssize_t got = ::fi_cq_read(fids_.queue.get(), entries.data(), entries.size());
    if (got == -FI_EAGAIN) return false;
    if (got < 0) require(got, "fi_cq_read");
    for (const auto& entry : std::span(entries).first(static_cast<std::size_t>(got))) {
      const bool is_receive = (entry.flags & FI_RECV) != 0;
      ++(is_receive ? done_in_ : done_out_);
    }
    return true;
  }

  static constexpr std::uint64_t kTag = 1;

  const int rank_;
  const std::chrono::milliseconds timeout_;
  const std::string provider_;
  std::shared_ptr<Store> store_;
  ofi::Info info_;
  ofi::Fids fids_;
  std::array<fi_context2, kDepth> sends_{};
  std::array<fi_context2, kDepth> receives_{};
  std::size_t done_out_ = 0;
  std::size_t done_in_ = 0;
};

}  // namespace

std::unique_ptr<Pipe> make_libfabric_pipe(const PipeRequest& request) {
  return std::make_unique<LibfabricPipe>(request);
}

std::vector<std::string> bare_libfabric_providers() {
  if (!ofi::why_no_library().empty()) return {};
  return ofi::usable_providers();
}

}  // namespace kolo::bench
