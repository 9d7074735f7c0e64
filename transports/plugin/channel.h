// A channel over a whole table.
#pragma once

#include "transports/plugin/status.h"
#include "transports/transport.h"

namespace kolo::plugin {

class PluggedChannel final : public Channel {
 public:
  // Where the table has stream functions.
  class Stream final : public StreamChannel {
   public:
    explicit Stream(PluggedChannel& channel) : host_(channel) {}
    const Capabilities& capabilities() const override { return host_.capabilities_; }
    std::byte* reserve(void* stream, std::size_t bytes) override;
    void commit(void* stream, unsigned flags) override;
    const std::byte* view(void* stream, std::size_t bytes) override;
    void release(void* stream) override;

   private:
    PluggedChannel& host_;
  };

  PluggedChannel(const Plugin& plugin, kolo_channel* channel, int rank, int peer);

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override;

  std::byte* reserve(std::size_t bytes) override;
  void commit(unsigned flags) override;
  bool send(std::span<const std::byte> data, unsigned flags) override;
  bool is_drained() override;

  const std::byte* view(std::size_t bytes) override;
  void release() override;
  bool receive(std::span<std::byte> into, unsigned flags) override;

  std::byte* view_to_answer(std::size_t bytes) override;
  void answer() override;
  const std::byte* view_answer(std::size_t bytes) override;
  void release_answer() override;

  std::byte* map(const MemoryHandle& handle) override;
  StreamChannel* stream() override { return capabilities_.is_stream_ordered ? &stream_ : nullptr; }
  bool is_connected() const override;
  std::string why_unconnected() const override;

  // From now on every call says so.
  void close() { is_closed_ = true; }

 private:
  void require_open() const {
    if (is_closed_) [[unlikely]]
      checker_.fail_as_closed();
  }
  void require_fits(std::size_t bytes) const;
  void require_answers(unsigned flags) const;

  const kolo_plugin& table_;
  StatusChecker checker_;
  kolo_channel* const channel_;
  const int peer_;
  Capabilities capabilities_;
  mutable ChannelStatistics statistics_;
  Stream stream_;
  bool is_closed_ = false;
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  const std::byte* viewed_ = nullptr;  // what view gave last, until its release
  std::byte* to_answer_ = nullptr;     // and view_to_answer
  std::size_t viewed_bytes_ = 0;
  bool has_answer_ = false;
  std::size_t answer_bytes_ = 0;
};

}  // namespace kolo::plugin
