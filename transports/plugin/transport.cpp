#include "transports/plugin/transport.h"

#include <fmt/format.h>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transports/base/adapter.h"
#include "transports/base/check.h"
#include "transports/base/topology.h"
#include "transports/error.h"
#include "transports/plugin/channel.h"
#include "transports/plugin/plain.h"
#include "transports/plugin/status.h"
#include "transports/plugin/store_functions.h"

namespace kolo::plugin {

namespace {

constexpr std::size_t kPlainSegmentBytes = 64 * 1024;

// The transport's own object, with the table and the store that it needs as long as it lives.
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
    check(is_made && transport_ != nullptr, "a transport's make must make one, or fail");
  }
  ~Made() {
    if (transport_ != nullptr) table().destroy(transport_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const kolo_plugin& table() const { return plugin_.table; }
  StatusChecker& calls() { return checker_; }
  kolo_transport* get() const { return transport_; }

 private:
  const Plugin plugin_;
  StoreFunctions store_;
  StatusChecker checker_;
  kolo_transport* transport_ = nullptr;
};

std::shared_ptr<std::byte[]> allocate_from(Made& made, std::size_t bytes) {
  void* memory = nullptr;
  void* owner = nullptr;
  StatusChecker calls(made.plugin(), made.calls().rank());  // any thread may ask
  calls.done(made.table().allocate(made.get(), bytes, &memory, &owner, calls.error()));
  const auto free_memory = made.table().free_memory;
  return {static_cast<std::byte*>(memory),
          [owner, free_memory](std::byte*) { free_memory(owner); }};
}

// Over a table of the whole form, of which nothing is called after quiesce but destroy.
class PluggedTransport final : public Transport {
 public:
  PluggedTransport(std::unique_ptr<Made> made, int rank, int size)
      : made_(std::move(made)), table_(made_->table()), rank_(rank), size_(size) {
    for (int peer = 0; peer < size; ++peer) {
      channels_.push_back(
          peer == rank
              ? nullptr
              : std::make_unique<PluggedChannel>(
                    made_->plugin(), channel_to(made_->plugin(), made_->get(), peer), rank, peer));
    }
  }
  ~PluggedTransport() override { quiesce(); }

  std::string_view name() const override { return table_.name; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < size_ && peer != rank_, "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {
    if (!is_quiesced_) made_->calls().done(table_.progress(made_->get(), made_->calls().error()));
  }

  int descriptor() const override {
    return is_quiesced_ || table_.descriptor == nullptr ? -1 : table_.descriptor(made_->get());
  }
  bool arm() override {
    return !is_quiesced_ && table_.arm != nullptr &&
           made_->calls().done(table_.arm(made_->get(), made_->calls().error()));
  }
  void disarm() override {
    if (!is_quiesced_ && table_.disarm != nullptr) table_.disarm(made_->get());
  }

  void quiesce() noexcept override {
    {
      const std::lock_guard lock(allocating_);
      if (std::exchange(is_quiesced_, true)) return;
    }
    table_.quiesce(made_->get());
    for (const auto& channel : channels_) {
      if (channel) channel->close();
    }
  }

  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    const std::lock_guard lock(allocating_);
    return is_quiesced_ || table_.allocate == nullptr ? Transport::allocate(bytes)
                                                      : allocate_from(*made_, bytes);
  }

  MemoryHandle export_memory(const void* data, std::size_t bytes) override {
    if (is_quiesced_ || table_.export_memory == nullptr)
      return Transport::export_memory(data, bytes);
    const void* handle = nullptr;
    std::size_t handle_bytes = 0;
    const auto status = table_.export_memory(made_->get(), data, bytes, &handle, &handle_bytes,
                                             made_->calls().error());
    if (!made_->calls().done(status)) return {};
    return {std::string(static_cast<const char*>(handle), handle_bytes)};
  }

 private:
  const std::unique_ptr<Made> made_;
  const kolo_plugin& table_;
  const int rank_;
  const int size_;
  std::vector<std::unique_ptr<PluggedChannel>> channels_;
  std::mutex allocating_;  // by any thread, and not while or after this one quiesces
  bool is_quiesced_ = false;
};

// An adapted transport, with what it stands on: that goes last.
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
  kolo_capabilities told{};
  told.size = sizeof told;
  told.segment_bytes = kPlainSegmentBytes;
  if (made.table().capabilities != nullptr && request.size > 1) {
    const int peer = request.rank == 0 ? 1 : 0;
    made.table().capabilities(channel_to(made.plugin(), made.get(), peer), &told);
  }
  require_segment_bytes(made.plugin(), told.segment_bytes);
  return told.segment_bytes;
}

std::string_view what_joins(int reach) {
  return reach == KOLO_PROCESS ? "the threads of one process" : "the processes of one host";
}

void require_reach(const Plugin& plugin, const TransportRequest& request) {
  const int reach = plugin.table.reach;
  if (reach == KOLO_NETWORK) return;
  const Topology placement =
      find_topology(*request.store, request.rank, request.size, request.deadline, request.host_id);
  if (reach == KOLO_PROCESS ? placement.is_one_process : placement.is_one_host) return;
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("rank {}: {} joins {}, and these {} ranks are farther apart: ask for "
                          "another transport, or for auto",
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
  if (plugin.is_whole())
    return std::make_unique<PluggedTransport>(std::move(made), request.rank, request.size);
  AdapterSettings settings;
  settings.name = plugin.table.name;
  settings.rank = request.rank;
  settings.size = request.size;
  settings.segment_bytes = plain_segment_bytes(*made, request);
  return adapt(std::make_unique<PlainPlugged>(std::move(made), request.rank, request.size),
               settings);
}

}  // namespace kolo::plugin
