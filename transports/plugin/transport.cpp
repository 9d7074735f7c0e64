#include "transports/plugin/transport.h"

#include <fmt/format.h>
#include <string>
#include <utility>

#include "transports/base/adapter.h"
#include "transports/base/check.h"
#include "transports/base/topology.h"
#include "transports/base/transport_kind.h"
#include "transports/error.h"
#include "transports/plugin/plain.h"
#include "transports/plugin/status.h"
#include "transports/plugin/store_functions.h"

namespace kolo::inline v0::plugin {

namespace {

constexpr std::size_t kPlainSegmentBytes = 64 * 1024;

// Owner of the external transport object, with the table and the store that it needs.
class Made {
 public:
  Made(const Plugin& plugin, const TransportRequest& request)
      : plugin_(plugin),
        store_(request.store, request.rank, request.size),
        checker_(plugin_, request.rank) {
    const kolo_plugin_request told = {sizeof(kolo_plugin_request),
                                      request.rank,
                                      request.size,
                                      request.local_ranks,
                                      nanoseconds(request.deadline),
                                      request.segment_bytes,
                                      request.host_id.c_str(),
                                      plugin_.options.c_str(),
                                      store_.functions()};
    const bool is_made = checker_.done(table().make(&told, &transport_, checker_.error()));
    check(is_made && transport_ != nullptr, "make() of a transport must return one, or fail");
  }
  ~Made() {
    if (transport_ != nullptr) table().destroy(transport_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const kolo_plugin& table() const { return plugin_.table; }
  kolo_transport* get() const { return transport_; }

 private:
  const Plugin plugin_;
  StoreFunctions store_;
  StatusChecker checker_;
  kolo_transport* transport_ = nullptr;
};

// Adapted transport that owns the external object: `made_` is destroyed last.
class PlainPlugged final : public PlainTransport {
 public:
  PlainPlugged(std::unique_ptr<Made> made, int rank, int size)
      : made_(std::move(made)), plain_(make_plain(made_->plugin(), made_->get(), rank, size)) {}

  PlainChannel& channel(int peer) override { return plain_->channel(peer); }
  void progress() override { plain_->progress(); }
  void quiesce() noexcept override { plain_->quiesce(); }
  int descriptor() const override { return plain_->descriptor(); }
  bool arm() override { return plain_->arm(); }
  void disarm() override { plain_->disarm(); }

 private:
  const std::unique_ptr<Made> made_;
  const std::unique_ptr<PlainTransport> plain_;
};

std::size_t plain_segment_bytes(const Made& made, const TransportRequest& request) {
  if (request.segment_bytes != 0) return request.segment_bytes;
  if (made.table().segment_bytes == nullptr) return kPlainSegmentBytes;
  const std::size_t told = made.table().segment_bytes(made.get());
  require_segment_bytes(made.plugin(), told);
  return told;
}

std::string_view what_joins(int reach) {
  return reach == KOLO_PROCESS ? "the threads of one process" : "the processes of one host";
}

void require_reach(const Plugin& plugin, const TransportRequest& request) {
  const int reach = plugin.table.reach;
  if (reach == KOLO_NETWORK) return;
  const auto placement = topology_of(request);
  if (reach == KOLO_PROCESS ? placement->is_one_process : placement->is_one_host) return;
  throw Error(
      ErrorCode::kUnavailable, kNoPeer,
      fmt::format("rank {}: {} connects only {}, and these {} ranks are farther apart: choose "
                  "another transport, or auto",
                  request.rank, plugin.table.name, what_joins(reach), request.size));
}

}  // namespace

std::unique_ptr<Transport> make_plugged(const Plugin& plugin, const TransportRequest& request) {
  const char* const why = plugin.table.why_unusable == nullptr ? "" : plugin.table.why_unusable();
  if (why != nullptr && *why != '\0') {
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format("rank {}: {} cannot be used here: {}", request.rank, plugin.table.name,
                            one_line(why)));
  }
  require_reach(plugin, request);
  auto made = std::make_unique<Made>(plugin, request);
  AdapterSettings settings;
  settings.name = plugin.table.name;
  settings.rank = request.rank;
  settings.size = request.size;
  settings.segment_bytes = plain_segment_bytes(*made, request);
  return adapt(std::make_unique<PlainPlugged>(std::move(made), request.rank, request.size),
               settings);
}

}  // namespace kolo::inline v0::plugin
