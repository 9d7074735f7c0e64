// Bare UCX, the reference for the transport ucx.
//
// Each message is one tagged message, as in ucx_perftest's tag_lat and tag_bw and in the MPIs over
// UCX. It is received in place, with as many receives posted ahead as such programs post. There is
// no credit, no liveness check, and no order except UCX's: it serves two ranks that both know what
// comes.
#include <fmt/format.h>
#include <sched.h>
#include <ucp/api/ucp.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "bench/p2p/pipe.h"
#include "transports/error.h"
#include "transports/store/all_gather.h"
#include "transports/ucx/library.h"

namespace kolo::bench {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kDepth = 64;  // operations in flight per direction
constexpr int kPolls = 500;         // without progress, before the core is yielded
constexpr int kPollsPerClock = 10'000;
constexpr ucp_tag_t kTag = 1;

// Functions of libucp by address, as the library is loaded at run time.
struct Ucp {
  decltype(&::ucp_config_read) config_read;
  decltype(&::ucp_config_release) config_release;
  decltype(&::ucp_init_version) init_version;
  decltype(&::ucp_cleanup) cleanup;
  decltype(&::ucp_worker_create) worker_create;
  decltype(&::ucp_worker_destroy) worker_destroy;
  decltype(&::ucp_worker_get_address) worker_get_address;
  decltype(&::ucp_worker_release_address) worker_release_address;
  decltype(&::ucp_worker_progress) worker_progress;
  decltype(&::ucp_ep_create) ep_create;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx;
  decltype(&::ucp_tag_send_nbx) tag_send_nbx;
  decltype(&::ucp_tag_recv_nbx) tag_recv_nbx;
  decltype(&::ucp_request_check_status) request_check_status;
  decltype(&::ucp_request_free) request_free;
  decltype(&::ucs_status_string) status_string;
};

Ucp load() {
  const posix::InstalledLibrary& file = ucx::installed_library();
  if (!file.why().empty()) throw Error(ErrorCode::kUnavailable, kNoPeer, "bare UCX: " + file.why());
  Ucp ucp{};
  const bool has_all = file.find("ucp_config_read", ucp.config_read) &&
                       file.find("ucp_config_release", ucp.config_release) &&
                       file.find("ucp_init_version", ucp.init_version) &&
                       file.find("ucp_cleanup", ucp.cleanup) &&
                       file.find("ucp_worker_create", ucp.worker_create) &&
                       file.find("ucp_worker_destroy", ucp.worker_destroy) &&
                       file.find("ucp_worker_get_address", ucp.worker_get_address) &&
                       file.find("ucp_worker_release_address", ucp.worker_release_address) &&
                       file.find("ucp_worker_progress", ucp.worker_progress) &&
                       file.find("ucp_ep_create", ucp.ep_create) &&
                       file.find("ucp_ep_close_nbx", ucp.ep_close_nbx) &&
                       file.find("ucp_tag_send_nbx", ucp.tag_send_nbx) &&
                       file.find("ucp_tag_recv_nbx", ucp.tag_recv_nbx) &&
                       file.find("ucp_request_check_status", ucp.request_check_status) &&
                       file.find("ucp_request_free", ucp.request_free) &&
                       file.find("ucs_status_string", ucp.status_string);
  if (!has_all) {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                "bare UCX: libucp.so.0 is older than its header: install UCX 1.13 or later");
  }
  return ucp;
}

// Operations of one direction, which complete in order.
struct Line {
  std::deque<void*> pending;  // requests in flight
  std::size_t posted = 0;
};

class UcxPipe final : public Pipe {
 public:
  explicit UcxPipe(const PipeRequest& request)
      : ucp_(load()),
        rank_(request.rank),
        timeout_(request.timeout),
        store_(prefixed(request.store, "bare_ucx/")) {
    try {
      open();
      meet();
    } catch (...) {
      close();
      throw;
    }
  }

  ~UcxPipe() override {
    try {
      finish_endpoint();
      meet_by(*this, *store_, rank_, "closing", Clock::now() + timeout_);
    } catch (const std::exception&) {  // the other rank is gone
    }
    close();
  }

  std::string library() const override { return "ucx"; }
  std::string level() const override { return "library"; }
  std::string transport() const override { return "ucx"; }

  bool needs_calls() const override { return true; }
  void get_on() override { ucp_.worker_progress(worker_); }

  void exchange(const Messages& out, const Messages& in) override {
    out_.posted = in_.posted = 0;
    int vain = 0;
    const auto begin = Clock::now();
    while (!is_done(out_, out) || !is_done(in_, in)) {
      bool has_moved = post_receives(in);
      has_moved |= post_sends(out);
      has_moved |= ucp_.worker_progress(worker_) != 0;
      has_moved |= take_done(out_, "ucp_tag_send_nbx");
      has_moved |= take_done(in_, "ucp_tag_recv_nbx");
      vain = has_moved ? 0 : vain + 1;
      if (vain % kPolls == kPolls - 1) ::sched_yield();
      if (vain % kPollsPerClock == kPollsPerClock - 1 && Clock::now() - begin > timeout_)
        throw Error(ErrorCode::kDeadline, 1 - rank_,
                    "timed out waiting for the other rank over bare UCX");
    }
  }

 private:
  static bool is_done(const Line& line, const Messages& messages) {
    return line.posted == messages.count && line.pending.empty();
  }

  void require(ucs_status_t status, const char* call) const {
    if (status == UCS_OK) return;
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("bare UCX: {}: {}", call, ucp_.status_string(status)));
  }

  void open() {
    ucp_config_t* config = nullptr;
    require(ucp_.config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_TAG;
    params.estimated_num_eps = 1;
    const auto status = ucp_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
    ucp_.config_release(config);
    require(status, "ucp_init");
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    require(ucp_.worker_create(context_, &worker, &worker_), "ucp_worker_create");
  }

  void meet() {
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    require(ucp_.worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
    const std::string own(reinterpret_cast<const char*>(address), length);
    ucp_.worker_release_address(worker_, address);
    const auto addresses = exchange_texts("address", own);
    const std::string& peer = addresses[static_cast<std::size_t>(1 - rank_)];
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
    require(ucp_.ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
    std::byte word{};
    std::byte got{};
    this->exchange({&word, 1, 1}, {&got, 1, 1});
    meet_by(*this, *store_, rank_, "met",
            Clock::now() + timeout_);  // keep progressing: the other rank may need answers
  }

  // Both ranks must progress until both endpoints are closed.
  void finish_endpoint() {
    ucp_request_param_t param{};
    void* const request = ucp_.ep_close_nbx(std::exchange(endpoint_, nullptr), &param);
    const auto deadline = Clock::now() + timeout_;
    if (UCS_PTR_IS_PTR(request)) {
      while (ucp_.request_check_status(request) == UCS_INPROGRESS && Clock::now() < deadline)
        ucp_.worker_progress(worker_);
      ucp_.request_free(request);
    }
  }

  void close() noexcept {
    if (worker_ != nullptr) ucp_.worker_destroy(worker_);
    if (context_ != nullptr) ucp_.cleanup(context_);
  }

  std::vector<std::string> exchange_texts(const char* key, const std::string& text) {
    return kolo::exchange(*store_, rank_, kRanks, key, text, Clock::now() + timeout_,
                          "meet over bare UCX");
  }

  // Null if it has completed.
  void* taken(ucs_status_ptr_t request, const char* call) const {
    if (UCS_PTR_IS_ERR(request)) require(UCS_PTR_STATUS(request), call);
    return request;
  }

  bool post_receives(const Messages& in) {
    const std::size_t before = in_.posted;
    for (; in_.posted < in.count && in_.pending.size() < kDepth; ++in_.posted) {
      ucp_request_param_t param{};
      void* const request = taken(ucp_.tag_recv_nbx(worker_, in.first + in_.posted * in.bytes,
                                                    in.bytes, kTag, ~ucp_tag_t{0}, &param),
                                  "ucp_tag_recv_nbx");
      if (request != nullptr) in_.pending.push_back(request);
    }
    return in_.posted > before;
  }

  bool post_sends(const Messages& out) {
    const std::size_t before = out_.posted;
    for (; out_.posted < out.count && out_.pending.size() < kDepth; ++out_.posted) {
      ucp_request_param_t param{};
      void* const request = taken(ucp_.tag_send_nbx(endpoint_, out.first + out_.posted * out.bytes,
                                                    out.bytes, kTag, &param),
                                  "ucp_tag_send_nbx");
      if (request != nullptr) out_.pending.push_back(request);
    }
    return out_.posted > before;
  }

  // Removes the oldest operations that have completed.
  bool take_done(Line& line, const char* call) const {
    const std::size_t before = line.pending.size();
    while (!line.pending.empty()) {
      const ucs_status_t status = ucp_.request_check_status(line.pending.front());
      if (status == UCS_INPROGRESS) break;
      ucp_.request_free(line.pending.front());
      line.pending.pop_front();
      require(status, call);
    }
    return line.pending.size() < before;
  }

  const Ucp ucp_;
  const int rank_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<Store> store_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  Line out_;
  Line in_;
};

}  // namespace

std::unique_ptr<Pipe> make_ucx_pipe(const PipeRequest& request) {
  return std::make_unique<UcxPipe>(request);
}

}  // namespace kolo::bench
