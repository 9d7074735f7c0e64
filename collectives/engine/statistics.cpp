// Statistics and timeline of an engine.
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "collectives/engine/engine.h"
#include "transports/base/check.h"
#include "transports/decorators/trace.h"
#include "transports/settings.h"

namespace kolo::inline v0 {

// Sums all bytes that the channels have moved, including headers and probes.
void Engine::count_bytes(CommunicatorStatistics& sum) const {
  const auto host = [this](int rank) { return hosts()[static_cast<std::size_t>(rank)]; };
  for (const Channel* channel : channels_) {
    if (channel == nullptr) continue;
    const std::uint64_t sent = channel->statistics().bytes_sent;
    sum.payload_bytes_sent += sent;
    sum.payload_bytes_received += channel->statistics().bytes_received;
    if (host(channel->peer()) != host(rank_)) sum.bytes_sent_to_other_hosts += sent;
  }
}

// Calls `at` under the lock while no other thread drives.
void Engine::look(const std::function<void()>& at) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  changed_.wait(lock, [this] { return !has_driver_ || is_driving(); });
  --waiters_;
  at();
  changed_.notify_all();
}

CommunicatorStatistics Engine::statistics() {
  CommunicatorStatistics sum;
  look([&] {
    count_bytes(sum);
    sum.header_bytes_sent = plans_->header_bytes_sent();
    std::uint64_t header_bytes_received = plans_->header_bytes_received();
    if (streams_ != nullptr) {
      sum.header_bytes_sent += streams_->header_bytes_sent();
      header_bytes_received += streams_->header_bytes_received();
    }
    sum.bytes_sent_to_other_hosts -= probed_.bytes_sent_to_other_hosts;
    sum.payload_bytes_sent -= sum.header_bytes_sent + probed_.payload_bytes_sent;
    sum.payload_bytes_received -= header_bytes_received + probed_.payload_bytes_received;
    sum.operations = finished_;
  });
  return sum;
}

PeerStatistics Engine::peer_statistics(int peer) {
  check(peer >= 0 && peer < size_, fmt::format("there is no rank {} among {}", peer, size_));
  const auto index = static_cast<std::size_t>(peer);
  PeerStatistics result;
  look([&] {
    if (channels_[index] != nullptr) {
      result.channel = channels_[index]->statistics();
      result.transport = transport_->name_to(peer);
      result.address = channels_[index]->remote_address();
    }
    result.waits = waits_[index];
    if (streams_ != nullptr && peer != rank_) result.on_streams = streams_->given_to(peer);
  });
  return result;
}

std::vector<StepProfile> Engine::step_profile() {
  std::vector<StepProfile> result;
  look([&] {
    if (recorder_) result = recorder_->profile();
  });
  return result;
}

void Engine::make_recorder() {
  const bool is_option = !options_.timeline.empty();
  std::string file = is_option ? options_.timeline : read_settings().timeline;
  const bool is_first_world = key_prefix_ == "world/1/";
  if (!file.empty()) file = timeline_file(file, is_first_world ? "" : key_prefix_, job_rank(rank_));
  if (!options_.profile && file.empty()) return;
  recorder_ = std::make_unique<Recorder>(job_rank(rank_), file, key_prefix_,
                                         is_option ? "the option `timeline`" : "KOLO_TIMELINE");
}

// Writes at most once: after a failed attempt the caller has had its error.
void Engine::write_timeline() {
  if (!recorder_ || std::exchange(is_timeline_written_, true)) return;
  try {
    recorder_->write();
  } catch (const Error& error) {
    throw Error(error.code(), kNoPeer,
                fmt::format("rank {}: the timeline: {}", rank_, error.what()));
  }
}

void Engine::write_records() {
  std::exception_ptr wrong;
  look([&] {
    try {
      write_timeline();
      write_trace_of(*transport_);
    } catch (...) {
      wrong = std::current_exception();
    }
  });
  if (wrong) std::rethrow_exception(wrong);
}

}  // namespace kolo::inline v0
