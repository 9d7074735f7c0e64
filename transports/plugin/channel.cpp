#include "transports/plugin/channel.h"

#include "transports/base/check.h"

namespace kolo::plugin {

namespace {

constexpr std::string_view kNoView =
    "a transport's view must lie somewhere, also that of a segment of no bytes";

kolo_capabilities to_table(const Capabilities& can) {
  return {sizeof(kolo_capabilities),
          can.memory_kinds,
          static_cast<std::uint32_t>(can.segment_memory),
          can.segment_bytes,
          can.preferred_segment_bytes,
          can.shortest_segment_bytes,
          can.zero_copy_bytes,
          can.credit_segments,
          can.latency_us,
          can.bandwidth_GBps,
          can.straight_segment_bytes};
}

Capabilities asked_of(const Plugin& plugin, kolo_channel* channel) {
  Capabilities can;
  kolo_capabilities told = to_table(can);
  plugin.table.capabilities(channel, &told);
  require_segment_bytes(plugin, told.segment_bytes);
  check(told.preferred_segment_bytes <= told.segment_bytes,
        "a transport's preferred_segment_bytes must not exceed its segment_bytes");
  check(told.straight_segment_bytes <= told.segment_bytes,
        "a transport's straight_segment_bytes must not exceed its segment_bytes");
  check(told.credit_segments >= kMinimumCredit, "a transport's credit_segments must be at least 4");
  can.memory_kinds = told.memory_kinds;
  can.segment_memory = static_cast<MemoryKind>(told.segment_memory);
  can.segment_bytes = told.segment_bytes;
  can.preferred_segment_bytes = told.preferred_segment_bytes;
  can.shortest_segment_bytes = told.shortest_segment_bytes;
  can.zero_copy_bytes = told.zero_copy_bytes;
  can.credit_segments = told.credit_segments;
  can.latency_us = told.latency_us;
  can.bandwidth_GBps = told.bandwidth_GBps;
  can.straight_segment_bytes = told.straight_segment_bytes;
  can.can_answer = plugin.table.answer != nullptr;
  can.can_map = plugin.table.map != nullptr;
  can.is_stream_ordered = plugin.table.stream_reserve != nullptr;
  return can;
}

std::byte* bytes_at(void* memory) { return static_cast<std::byte*>(memory); }
const std::byte* bytes_at(const void* memory) { return static_cast<const std::byte*>(memory); }

}  // namespace

PluggedChannel::PluggedChannel(const Plugin& plugin, kolo_channel* channel, int rank, int peer)
    : table_(plugin.table),
      checker_(plugin, rank),
      channel_(channel),
      peer_(peer),
      capabilities_(asked_of(plugin, channel)),
      stream_(*this) {}

const ChannelStatistics& PluggedChannel::statistics() const {
  if (table_.counts != nullptr && !is_closed_) {
    kolo_counts counts{sizeof(kolo_counts), 0, 0};
    table_.counts(channel_, &counts);
    statistics_.system_calls = counts.system_calls;
    statistics_.connections = counts.connections;
  }
  return statistics_;
}

void PluggedChannel::require_fits(std::size_t bytes) const {
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
}

void PluggedChannel::require_answers(unsigned flags) const {
  check((flags & kAnswered) == 0 || capabilities_.can_answer,
        "this channel takes no answers: ask Capabilities::can_answer first");
}

// --- out ---

std::byte* PluggedChannel::reserve(std::size_t bytes) {
  require_open();
  require_fits(bytes);
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  void* slot = nullptr;
  if (!checker_.done(table_.reserve(channel_, bytes, &slot, checker_.error()))) return nullptr;
  check(slot != nullptr, "a transport's slot must lie somewhere, also one of no bytes");
  is_reserved_ = true;
  reserved_bytes_ = bytes;
  return bytes_at(slot);
}

void PluggedChannel::commit(unsigned flags) {
  require_open();
  check(is_reserved_, "commit() without a reserved slot");
  require_answers(flags);
  is_reserved_ = false;
  checker_.done(table_.commit(channel_, flags, checker_.error()));
  statistics_.bytes_sent += reserved_bytes_;
  ++statistics_.segments_sent;
}

bool PluggedChannel::send(std::span<const std::byte> data, unsigned flags) {
  require_open();
  require_fits(data.size());
  require_answers(flags);
  if (!checker_.done(table_.send(channel_, data.data(), data.size(), flags, checker_.error())))
    return false;
  statistics_.bytes_sent += data.size();
  ++statistics_.segments_sent;
  return true;
}

bool PluggedChannel::is_drained() {
  require_open();
  return checker_.done(table_.is_drained(channel_, checker_.error()));
}

// --- in ---

const std::byte* PluggedChannel::view(std::size_t bytes) {
  require_open();
  require_fits(bytes);
  if (viewed_ != nullptr) return viewed_;
  const void* segment = nullptr;
  if (!checker_.done(table_.view(channel_, bytes, &segment, checker_.error()))) return nullptr;
  check(segment != nullptr, kNoView);
  viewed_ = bytes_at(segment);
  viewed_bytes_ = bytes;
  return viewed_;
}

void PluggedChannel::release() {
  require_open();
  check(viewed_ != nullptr, "release() without a view");
  viewed_ = nullptr;
  checker_.done(table_.release(channel_, checker_.error()));
  statistics_.bytes_received += viewed_bytes_;
  ++statistics_.segments_received;
}

bool PluggedChannel::receive(std::span<std::byte> into, unsigned flags) {
  require_open();
  require_fits(into.size());
  check(viewed_ == nullptr && to_answer_ == nullptr, "receive() before the view was released");
  if (!checker_.done(table_.receive(channel_, into.data(), into.size(), flags, checker_.error())))
    return false;
  statistics_.bytes_received += into.size();
  ++statistics_.segments_received;
  return true;
}

// --- answers ---

std::byte* PluggedChannel::view_to_answer(std::size_t bytes) {
  if (!capabilities_.can_answer) return Channel::view_to_answer(bytes);
  require_open();
  require_fits(bytes);
  if (to_answer_ != nullptr) return to_answer_;
  void* segment = nullptr;
  if (!checker_.done(table_.view_to_answer(channel_, bytes, &segment, checker_.error())))
    return nullptr;
  check(segment != nullptr, kNoView);
  to_answer_ = bytes_at(segment);
  viewed_bytes_ = bytes;
  return to_answer_;
}

void PluggedChannel::answer() {
  if (!capabilities_.can_answer) return Channel::answer();
  require_open();
  check(to_answer_ != nullptr, "answer() without a view");
  to_answer_ = nullptr;
  checker_.done(table_.answer(channel_, checker_.error()));
  statistics_.bytes_received += viewed_bytes_;
  ++statistics_.segments_received;
  statistics_.bytes_sent += viewed_bytes_;
}

const std::byte* PluggedChannel::view_answer(std::size_t bytes) {
  if (!capabilities_.can_answer) return Channel::view_answer(bytes);
  require_open();
  const void* segment = nullptr;
  if (!checker_.done(table_.view_answer(channel_, bytes, &segment, checker_.error())))
    return nullptr;
  has_answer_ = true;
  answer_bytes_ = bytes;
  return bytes_at(segment);
}

void PluggedChannel::release_answer() {
  if (!capabilities_.can_answer) return Channel::release_answer();
  require_open();
  check(has_answer_, "release_answer() without an answer");
  has_answer_ = false;
  checker_.done(table_.release_answer(channel_, checker_.error()));
  statistics_.bytes_received += answer_bytes_;
}

// --- the rest ---

std::byte* PluggedChannel::map(const MemoryHandle& handle) {
  if (!capabilities_.can_map) return Channel::map(handle);
  require_open();
  void* memory = nullptr;
  const auto status =
      table_.map(channel_, handle.bytes.data(), handle.bytes.size(), &memory, checker_.error());
  return checker_.done(status) ? bytes_at(memory) : nullptr;
}

bool PluggedChannel::is_connected() const {
  const char* why_not = nullptr;
  return is_closed_ || table_.is_connected == nullptr ||
         table_.is_connected(channel_, &why_not) == KOLO_DONE;
}

std::string PluggedChannel::why_unconnected() const {
  const char* why_not = nullptr;
  if (!is_closed_ && table_.is_connected != nullptr) table_.is_connected(channel_, &why_not);
  return why_not == nullptr ? "" : why_not;
}

// --- on a stream ---

std::byte* PluggedChannel::Stream::reserve(void* stream, std::size_t bytes) {
  host_.require_open();
  void* slot = nullptr;
  StatusChecker& calls = host_.checker_;
  const auto status =
      host_.table_.stream_reserve(host_.channel_, stream, bytes, &slot, calls.error());
  return calls.done(status) ? bytes_at(slot) : nullptr;
}

void PluggedChannel::Stream::commit(void* stream, unsigned flags) {
  host_.require_open();
  StatusChecker& calls = host_.checker_;
  calls.done(host_.table_.stream_commit(host_.channel_, stream, flags, calls.error()));
}

const std::byte* PluggedChannel::Stream::view(void* stream, std::size_t bytes) {
  host_.require_open();
  const void* segment = nullptr;
  StatusChecker& calls = host_.checker_;
  const auto status =
      host_.table_.stream_view(host_.channel_, stream, bytes, &segment, calls.error());
  return calls.done(status) ? bytes_at(segment) : nullptr;
}

void PluggedChannel::Stream::release(void* stream) {
  host_.require_open();
  StatusChecker& calls = host_.checker_;
  calls.done(host_.table_.stream_release(host_.channel_, stream, calls.error()));
}

}  // namespace kolo::plugin
