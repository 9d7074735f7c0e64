#include "collectives/stream/stream_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/executor/recorder.h"
#include "collectives/planner/device_costs.h"
#include "transports/base/check.h"
#include "transports/cuda/chosen_device.h"
#include "transports/cuda/library.h"
#include "transports/cuda/peer_access.h"
#include "transports/error.h"

namespace kolo::inline v0 {
namespace {

using Kind = cuda::Pointer::Kind;

// How long the destructor waits for streams.
constexpr std::chrono::milliseconds kPatience{500};
constexpr std::chrono::microseconds kLookEvery{50};

// Device allocations whose place was checked; older ones are checked again.
constexpr std::size_t kKnownBuffers = 16;

// Call headers that may be on streams; one operation needs up to two per peer.
constexpr std::size_t kFewestCells = 256;

}  // namespace

StreamQueue::Own::~Own() {
  plans.clear();  // frees their scratch, which needs math
  math.reset();
  for (std::byte* const memory : pinned) at->free_host(memory);
}

StreamQueue::StreamQueue(const RankDevice& wanted, int rank)
    : rank_(rank), own_(std::make_unique<Own>()) {
  check(wanted.make_math != nullptr, "a device without kernels: RankDevice::make_math is empty");
  own_->driver = wanted.driver ? wanted.driver : cuda::installed_driver();
  cuda::DriverSettings needed;
  needed.runtime_version = wanted.runtime_version;
  if (const auto why = cuda::why_unusable(*own_->driver, needed); !why.empty())
    throw Error(ErrorCode::kUnavailable, kNoPeer, why);
  auto device = std::make_shared<RankDevice>(wanted);
  device->driver = own_->driver;
  device->number = cuda::choose_device(*own_->driver, wanted.number, rank);
  own_->at = std::make_unique<cuda::Device>(own_->driver, device->number);
  own_->math = wanted.make_math(device->number);
  own_->device = std::move(device);
}

// The transport has released all streams, so the enqueued work ends soon unless other work blocks
// it.
StreamQueue::~StreamQueue() {
  const auto until = Clock::now() + kPatience;
  for (auto at = given_.begin(); at != given_.end();) {
    if (has_left(at->second)) {
      forget(at->second);
      at = given_.erase(at);
    } else if (Clock::now() < until) {
      std::this_thread::sleep_for(kLookEvery);
    } else {
      break;
    }
  }
  for (cuda::Event const event : idle_events_) own_->at->destroy_event(event);
  if (given_.empty()) {
    const auto driver = own_->driver;
    driver->frees().run([own = std::shared_ptr<Own>(std::move(own_))]() mutable { own.reset(); });
  } else {
    keep(std::move(own_));
  }
}

// True if the stream has done all that was enqueued of this operation, complete or not.
bool StreamQueue::has_left(Given& given) noexcept {
  try {
    if (given.is_captured) return true;  // it is in no stream
    if (given.event == nullptr) {
      given.event = own_->at->make_event();
      own_->at->record(given.event, given.stream);
    }
    return own_->at->is_done(given.event);
  } catch (const std::exception&) {
    return false;  // the stream may no longer exist
  }
}

// In a static list, so that the memory stays reachable.
void StreamQueue::keep(std::unique_ptr<Own> stuck) noexcept {
  static std::atomic<Own*> kept{nullptr};
  Own* const first = stuck.release();
  first->next = kept.load();
  while (!kept.compare_exchange_weak(first->next, first)) {
  }
}

DeviceRequest StreamQueue::request() const {
  return {own_->device->number, own_->driver, own_->device->process};
}

std::string StreamQueue::describe_peer_access() const {
  return cuda::describe_peer_access(*own_->driver, *own_->at);
}

void StreamQueue::meet(std::span<Channel* const> channels) {
  channels_ = channels;
  expected_.resize(channels.size());
  counts_.resize(channels.size());
  slot_bytes_ = std::numeric_limits<std::size_t>::max();
  for (Channel* const channel : channels) {
    streams_.push_back(channel == nullptr ? nullptr : channel->stream());
    if (channel == nullptr) continue;
    if (streams_.back() == nullptr) {
      throw Error(
          ErrorCode::kUnavailable, channel->peer(),
          fmt::format("rank {}: its calls on streams cannot reach rank {}: {}; use transport auto",
                      rank_, channel->peer(), channel->why_no_stream()));
    }
    is_one_with_host_ = streams_.back()->is_one_with_host();
    slot_bytes_ = std::min(slot_bytes_, streams_.back()->capabilities().segment_bytes);
  }
  if (is_one_with_host_) make_cells(std::max(kFewestCells, 2 * channels.size()));
}

Costs StreamQueue::costs(std::span<const std::string> devices) const {
  const auto uuid = [](const std::string& device) { return device.substr(0, device.find(' ')); };
  DeviceSpeed speed;
  speed.memory_GBps = own_->at->memory_GBps();
  speed.is_one_device = std::ranges::all_of(
      devices, [&](const std::string& device) { return uuid(device) == uuid(devices.front()); });
  for (const StreamChannel* const channel : streams_) {
    if (channel != nullptr) speed.link_GBps = channel->capabilities().bandwidth_GBps;
  }
  return device_costs(speed);
}

void StreamQueue::suit(PlannerInputs& situation) const {
  situation.is_on_streams = true;
  situation.can_answer = false;
  situation.segments.longest = situation.segments.straight = slot_bytes_;
  for (const StreamChannel* const channel : streams_) {
    if (channel == nullptr) continue;
    const Capabilities& can = channel->capabilities();
    situation.credit = can.credit_segments;
    situation.segments.straight = channel->can_send() ? can.straight_segment_bytes : slot_bytes_;
  }
}

// --- before anything is sent ---

void StreamQueue::require_places(Call& call) {
  std::optional<cuda::Device::Entered> entered;
  if (call.stream) entered.emplace(*own_->at);
  call.is_captured = call.stream && own_->at->capture_of(call.stream->handle) != 0;
  if (call.is_captured) require_replays(call);
  require_place(call, "in", call.in, call.extents.in_bytes);
  if (call.out != call.in || call.extents.in_bytes == 0)
    require_place(call, "out", call.out, call.extents.out_bytes);
}

// A graph may be launched again without any host's knowledge.
void StreamQueue::require_replays(const Call& call) const {
  const auto refuse = [&call](const std::string& why) {
    throw std::invalid_argument(
        fmt::format("{}: the stream is being captured into a graph, and {}; call it outside of the "
                    "capture",
                    to_string(call.collective), why));
  };
  if (call.collective == Collective::kMessage)
    refuse("a message cannot be replayed: its two ranks alone cannot tell replays apart");
  for (std::size_t peer = 0; peer < streams_.size(); ++peer) {
    if (streams_[peer] == nullptr) continue;
    const std::string why = streams_[peer]->why_not_captured();
    if (!why.empty()) refuse(fmt::format("the channel to rank {} cannot: {}", peer, why));
  }
}

void StreamQueue::require_place(const Call& call, const char* name, const void* data,
                                std::size_t bytes) {
  if (data == nullptr || bytes == 0) return;
  const cuda::Device& device = *own_->at;
  const std::uint64_t buffer = call.stream ? device.number_at(data) : device.buffer_at(data);
  if (buffer == 0 && !call.stream) return;  // the driver does not know this memory
  const bool is_known =
      buffer != 0 && std::ranges::find(known_buffers_, buffer) != known_buffers_.end();
  if (call.stream && is_known) return;
  const cuda::Pointer at = device.look_at(data);
  const bool is_on_device = at.kind == Kind::kDevice || at.kind == Kind::kManaged;
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: '{}' {}", to_string(call.collective), name, what));
  };
  if (!call.stream) {
    if (at.kind == Kind::kDevice)
      refuse("is device memory, and the call names no stream: give CallOptions::stream");
    return;
  }
  if (!is_on_device)
    refuse(
        "is host memory, and the call is on a device's stream: give device memory, or no stream");
  if (at.kind == Kind::kDevice && at.device != device.number()) {
    refuse(fmt::format("is memory of device {}, and this communicator is on {}", at.device,
                       device.describe()));
  }
  if (known_buffers_.size() < kKnownBuffers) known_buffers_.resize(kKnownBuffers);
  known_buffers_[next_known_++ % kKnownBuffers] = buffer;
}

std::size_t StreamQueue::held_bytes() const {
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  for (const StreamChannel* const channel : streams_) {
    if (channel == nullptr) continue;
    const Capabilities& can = channel->capabilities();
    bytes = std::min(bytes, can.segment_bytes * static_cast<std::size_t>(can.credit_segments));
  }
  return bytes;
}

void StreamQueue::copy(const Call& call) {
  const std::size_t bytes = call.extents.in_bytes;
  if (bytes > 0) own_->math->copy(call.out, call.in, bytes, call.stream->handle);
}

// Two ranks that share a device reduce for each other in a long ring all-reduce. Shorter ones go
// through slots, whose host waits for no peer. The same on all ranks.
bool StreamQueue::answers(const Call& call, const PlanCache::Key& key) const {
  if (call.collective != Collective::kAllReduce || call.op == ReduceOp::kScaledSum) return false;
  if (streams_.size() != 2 || call.is_captured) return false;
  if (algorithm_name(key.algorithm) != "ring" || key.data_bytes <= 2 * slot_bytes_) return false;
  StreamChannel* const to_peer = streams_[rank_ == 0 ? 1 : 0];
  return to_peer->answers() != nullptr;
}

StreamExecutor& StreamQueue::find(const Call& call, const PlanCache::Key& key,
                                  const PlanCache& plans) {
  static const ServerPlan kNoServers;
  const ServerPlan& servers = key.servers == nullptr ? kNoServers : *key.servers;
  const bool can_answer = answers(call, key);
  for (const Plan& plan : own_->plans) {
    if (plan.key.algorithm == key.algorithm && plan.key.root == key.root &&
        plan.key.peer == key.peer && plan.is_captured == call.is_captured &&
        plan.can_answer == can_answer && plan.servers == servers) {
      return *plan.executor;
    }
  }
  auto executor =
      std::make_unique<StreamExecutor>(plans.write(key, can_answer), streams_, *own_->math);
  own_->plans.push_back({key, call.is_captured, can_answer, servers, std::move(executor)});
  return *own_->plans.back().executor;
}

// --- giving ---

void StreamQueue::start(const Operation& operation) {
  const Binding& said = operation.binding;
  StreamExecutor& executor = *operation.on_stream;
  StreamBinding binding;
  binding.stream = operation.stream;
  binding.in = said.in;
  binding.out = said.out;
  binding.count = said.header.count();
  binding.type = said.header.type;
  binding.op = said.header.op;
  binding.lengths = said.lengths;
  binding.scale = said.scale;
  binding.counts = counts_;
  binding.recorder = said.recorder;
  if (is_one_with_host_) {
    binding.segment_bytes = said.header.segment_bytes();
    binding.before_receiving = [this](int peer) { return receive_header_on_stream(peer); };
  } else if (operation.is_captured || said.header.collective == Collective::kMessage) {
    // Through slots: ranks that all send before they receive then do not wait for each other, and
    // no replay reads memory of a peer that was freed.
    binding.segment_bytes = slot_bytes_;
  }
  executor.start(binding);
  recorder_ = said.recorder;
  header_tried_ = {};
  Given& given = given_[++number_];
  given.header = said.header;
  given.has_own_lengths = said.has_own_lengths;
  given.executor = &executor;
  given.deadline = operation.deadline;
  given.timeout = operation.timeout;
  given.stream = operation.stream;
  given.is_captured = operation.is_captured;
  has_captured_ |= operation.is_captured;
  is_leaving_ |= is_one_with_host_;
  if (said.recorder != nullptr) {
    given.recorded =
        said.recorder->begin_operation(said.header, executor.schedule().algorithm, kStreamTrack);
  }
  to_open_.assign(executor.sends_to().begin(), executor.sends_to().end());
  if (!is_one_with_host_) expect_headers();
}

bool StreamQueue::advance(const Operation& operation) {
  if (operation.on_stream->lacks_scratch()) {
    const bool is_alone = first_at_work() == &current().header;
    if (!is_alone) return wait_for(kNobody, "this rank's streams to finish earlier operations");
    operation.on_stream->allocate_scratch();
  }
  const bool is_opened =
      is_one_with_host_ ? send_header_on_stream(operation.stream) : send_header_on_host();
  if (!is_opened) return false;
  StreamExecutor& executor = *operation.on_stream;
  const std::uint64_t moves = executor.moves();
  const bool is_given = executor.advance();
  moves_ += executor.moves() - moves;
  if (!is_given) return wait_for(executor.awaited_peer(), executor.describe_wait());
  Given& given = current();
  if (!given.is_captured) {
    if (idle_events_.empty()) idle_events_.push_back(own_->at->make_event());
    own_->at->record(idle_events_.back(), operation.stream);
    given.event = idle_events_.back();
    idle_events_.pop_back();
  }
  given.is_given = true;
  if (Recorder* const recorder = operation.binding.recorder)
    recorder->end_operation(given.recorded);
  ++moves_;
  return true;
}

bool StreamQueue::wait_for(int peer, std::string what) {
  awaited_peer_ = peer;
  awaited_ = "wait for " + std::move(what);
  return false;
}

}  // namespace kolo::inline v0
