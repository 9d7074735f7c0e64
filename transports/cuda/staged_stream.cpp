#include "transports/cuda/staged_stream.h"

#include <fmt/format.h>
#include <algorithm>
#include <new>
#include <utility>

#include "transports/base/check.h"

namespace kolo::inline v0::cuda {

namespace {

std::size_t pinned_bytes(std::size_t segment_bytes) {
  return kWordsBytes + 2 * slots_for(segment_bytes) * segment_bytes;
}

// Capabilities of the stream form over a host channel.
Capabilities staged(Capabilities can, std::size_t longest_segment_bytes) {
  can.segment_bytes = std::min(can.segment_bytes, longest_segment_bytes);
  can.preferred_segment_bytes = std::min(can.preferred_segment_bytes, can.segment_bytes);
  can.shortest_segment_bytes = std::min(can.shortest_segment_bytes, can.segment_bytes);
  can.straight_segment_bytes = std::size_t{64} << 20;
  can.zero_copy_bytes = 0;
  can.credit_segments =
      std::max(can.credit_segments, static_cast<int>(slots_for(can.segment_bytes)));
  can.latency_us += 20;
  can.can_answer = false;
  return can;
}

Ring ring_in(const PinnedMemory& pinned, std::size_t segment_bytes, std::uint64_t which) {
  const std::uint64_t count = slots_for(segment_bytes);
  const std::size_t offset = kWordsBytes + which * count * segment_bytes;
  return {pinned.data() + offset, pinned.address() + offset, segment_bytes, count};
}

}  // namespace

std::size_t Staging::under_way() const {
  std::size_t operations = 0;
  for (const auto& stream : streams) {
    if (stream) operations += stream->under_way();
  }
  return operations;
}

StagedStream::Memory::Memory(Staging& staging, std::size_t segment_bytes)
    : pinned(staging.device, staging.allocate(pinned_bytes(segment_bytes)),
             pinned_bytes(segment_bytes)),
      words(*new (pinned.data()) StagingWords{}),
      out(staging.out, ring_in(pinned, segment_bytes, 0), words,
          pinned.address() + offsetof(StagingWords, copied)),
      in(staging.in, ring_in(pinned, segment_bytes, 1), words,
         pinned.address() + offsetof(StagingWords, landed)) {}

StagedStream::StagedStream(Staging& staging, Channel& host)
    : staging_(staging),
      host_(host),
      capabilities_(staged(host.capabilities(), staging.longest_segment_bytes)),
      slots_(slots_for(capabilities_.segment_bytes)),
      batches_(staging.device),
      memory_(staging, capabilities_.segment_bytes),
      out_slots_{{staging.device, slots_ * capabilities_.segment_bytes}},
      in_slots_{{staging.device, slots_ * capabilities_.segment_bytes}},
      landings_(staging.device) {}

// --- preconditions and errors ---

void StagedStream::die(const Error& error, const char* doing) {
  const bool is_known =
      error.peer() != kNoPeer;  // an error of the host channel, with a complete text
  dead_.emplace(error.code(), error.peer(),
                is_known ? std::string(error.what())
                         : fmt::format("rank {}: {} rank {} on a stream: {}", staging_.rank, doing,
                                       host_.peer(), error.what()));
  throw Error(*dead_);
}

// A failure inside `body` leaves an operation half enqueued, so the channel cannot be used after
// it.
template <typename Body>
auto StagedStream::on_device(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    die(error, "sending to or receiving from");
  }
}

void StagedStream::require_open() const {
  if (staging_.is_closed) {
    throw Error(ErrorCode::kAborted, kNoPeer,
                fmt::format("rank {}: this transport was closed; do not use results that its "
                            "streams had not finished",
                            staging_.rank));
  }
  if (dead_) throw Error(*dead_);
}

void StagedStream::require_batch(void* stream) {
  require_open();
  batches_.require(stream);
}

void StagedStream::begin(void* stream) {
  require_open();
  check(staging_.device.capture_of(stream) == 0,
        "this stream is being captured into a graph: " + why_not_captured());
  is_used_ = true;
  batches_.begin(stream, false);
}

void StagedStream::end(void* stream) {
  require_batch(stream);
  batches_.end();
}

void StagedStream::require_known(const void* memory, std::size_t bytes, const char* operation) {
  check(bytes == 0 || staging_.device.is_known(memory),
        fmt::format("{} on a stream of host memory that no device reaches: register it with the "
                    "driver, or use the channel's own {}",
                    operation, operation));
}

// --- words ---

Address StagedStream::address_of(const std::atomic<std::uint64_t>& word) const {
  const auto* const at = reinterpret_cast<const std::byte*>(&word);
  return memory_.pinned.address() + static_cast<Address>(at - memory_.pinned.data());
}

void StagedStream::write(const std::atomic<std::uint64_t>& word, std::uint64_t value,
                         void* stream) {
  on_device([&] { staging_.device.run(write_word(address_of(word), value), stream); });
}

void StagedStream::wait(const std::atomic<std::uint64_t>& word, std::uint64_t value, void* stream) {
  on_device([&] {
    batches_.wait([&] { staging_.device.run(wait_for_word(address_of(word), value), stream); });
  });
}

// --- slots ---

// Next slot of a ring.
std::byte* StagedStream::slot(const Slots& slots) const {
  return slots.memory.data() + slots.next % slots_ * capabilities_.segment_bytes;
}

std::byte* StagedStream::reserve(void* stream, std::size_t bytes) {
  require_batch(stream);
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  if (is_full()) return nullptr;
  std::byte* const next = slot(out_slots_);
  if (const std::uint64_t last = out_slots_.ends[out_slots_.next % slots_]; last != 0)
    wait(memory_.words.copied, last, stream);
  is_reserved_ = true;
  reserved_bytes_ = bytes;
  return next;
}

void StagedStream::commit(void* stream, unsigned flags) {
  require_batch(stream);
  check(is_reserved_, "commit() without a reserved slot");
  check((flags & kAnswered) == 0, "kAnswered is for host memory; leave it out on a stream");
  is_reserved_ = false;
  const std::uint64_t end = memory_.out.add({slot(out_slots_), reserved_bytes_}, flags & kReceived);
  out_slots_.ends[out_slots_.next++ % slots_] = end;
  write(memory_.words.handed, end, stream);
}

const std::byte* StagedStream::view(void* stream, std::size_t bytes) {
  require_batch(stream);
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  if (viewed_ != nullptr) return viewed_;
  if (is_full()) return nullptr;
  std::byte* const next = slot(in_slots_);
  std::uint64_t& last = in_slots_.ends[in_slots_.next++ % slots_];
  viewed_end_ = memory_.in.add({next, bytes}, memory_.words.taken, last);
  last = viewed_end_;
  wait(memory_.words.landed, viewed_end_, stream);
  return viewed_ = next;
}

void StagedStream::release(void* stream) {
  require_batch(stream);
  check(viewed_ != nullptr, "release() without a view");
  viewed_ = nullptr;
  write(memory_.words.taken, viewed_end_, stream);
}

// --- zero-copy calls ---

bool StagedStream::send(void* stream, std::span<const std::byte> data, unsigned flags) {
  require_batch(stream);
  check(!is_reserved_, "send() before the slot reserved last was committed");
  check((flags & kAnswered) == 0, "kAnswered is for host memory; leave it out on a stream");
  require_known(data.data(), data.size(), "send");
  if (is_full()) return false;
  lent_ = memory_.out.add(data, flags & kReceived);
  write(memory_.words.handed, lent_, stream);
  return true;
}

// The transport owns the destination once the stream has reached this point.
void StagedStream::receive_into(void* stream, std::span<std::byte> into) {
  StagingWords& words = memory_.words;
  viewed_end_ = memory_.in.add(into, words.opened, memory_.in.end_of(into.size()));
  write(words.opened, viewed_end_, stream);
  wait(words.landed, viewed_end_, stream);
}

bool StagedStream::receive(void* stream, std::span<std::byte> into, unsigned) {
  require_batch(stream);
  check(viewed_ == nullptr, "the segment viewed last has not been released");
  require_known(into.data(), into.size(), "receive");
  if (is_full()) return false;
  receive_into(stream, into);
  return true;
}

const std::byte* StagedStream::view_sent(void* stream, std::size_t bytes) {
  if (bytes <= capabilities_.segment_bytes) return view(stream, bytes);
  require_batch(stream);
  if (viewed_ != nullptr) return viewed_;
  if (is_full()) return nullptr;
  std::byte* const whole = on_device([&] { return landings_.find(bytes, stream); });
  receive_into(stream, {whole, bytes});
  return viewed_ = whole;
}

void StagedStream::drain(void* stream) {
  require_batch(stream);
  if (lent_ != 0) wait(memory_.words.copied, lent_, stream);
}

// --- for the staged channel ---

bool StagedStream::pump(bool may_send, bool may_receive) {
  if (!is_used_ || staging_.is_closed) return false;
  if (dead_) {
    if (under_way() == 0) return false;
    throw Error(*dead_);
  }
  bool has_moved = false;
  try {
    has_moved |= memory_.out.pump(host_, may_send);
  } catch (const Error& error) {
    die(error, "copying data for");
  }
  try {
    has_moved |= memory_.in.pump(host_, may_receive);
  } catch (const Error& error) {
    die(error, "copying data from");
  }
  return has_moved;
}

bool StagedStream::watches_device() const {
  return is_used_ && !dead_ && (memory_.out.watches_device() || memory_.in.watches_device());
}

std::size_t StagedStream::under_way() const {
  return memory_.out.transfers() + memory_.in.transfers();
}

void StagedStream::free_streams() noexcept {
  memory_.words.copied.store(kReleased, std::memory_order_release);
  memory_.words.landed.store(kReleased, std::memory_order_release);
}

}  // namespace kolo::inline v0::cuda
