#include "bench/p2p/pipe.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bench/cli/sizes.h"
#include "bench/device/memory.h"
#include "bench/measure/cores.h"
#include "collectives/algorithms/direct.h"
#include "collectives/communicator.h"
#include "collectives/executor/plan_cache.h"
#include "transports/base/preposted_receives.h"
#include "transports/base/waiting.h"
#include "transports/decorators/trace.h"
#include "transports/error.h"
#include "transports/registry.h"

namespace kolo::bench {
namespace {

constexpr int kRanks = 2;

// Position in a series of messages: the next segment.
class Cursor {
 public:
  Cursor(const Messages& messages, std::size_t segment_bytes)
      : messages_(messages), segment_bytes_(segment_bytes) {}

  bool is_done() const { return message_ == messages_.count; }
  std::size_t message() const { return message_; }
  const Messages& messages() const { return messages_; }

  std::span<std::byte> segment() const {
    return {messages_.first + message_ * messages_.bytes + offset_,
            std::min(segment_bytes_, messages_.bytes - offset_)};
  }

  void step() {
    offset_ += segment_bytes_;
    if (offset_ < messages_.bytes) return;
    offset_ = 0;
    ++message_;
  }

 private:
  Messages messages_;
  std::size_t segment_bytes_;
  std::size_t message_ = 0;
  std::size_t offset_ = 0;
};

class SegmentPipe final : public Pipe {
 public:
  explicit SegmentPipe(const PipeRequest& request)
      : rank_(request.rank),
        timeout_(request.timeout),
        segment_bytes_(request.segment_bytes),
        store_(prefixed(joined_once(request.store), "p2p/")),
        policy_(kRanks,
                static_cast<int>(available_cores().size())) {  // this rank is bound to some of them
    store_->join(rank_);
    TransportRequest wanted;
    wanted.rank = rank_;
    wanted.size = kRanks;
    wanted.store = prefixed(store_, "transport/");
    wanted.deadline = Clock::now() + timeout_;
    wanted.segment_bytes = request.segment_bytes;
    wanted.local_ranks = kRanks;
    transport_ = make_transport(request.transport, wanted);
    channel_ = &transport_->channel(1 - rank_);
    expecting_ = dynamic_cast<PrepostedReceives*>(channel_);
  }

  ~SegmentPipe() override {
    transport_.reset();
    try {
      store_->leave();
    } catch (const Error&) {
      // The store is gone, so no rank can be told.
    }
  }

  std::string level() const override { return "segments"; }
  std::string transport() const override { return std::string(transport_->name()); }
  std::string carrier() const override { return transport_->carrier(); }

  void write_records() override { write_trace_of(*transport_); }

  void exchange(const Messages& out, const Messages& in) override {
    Cursor sending(out, segment_bytes(out.bytes));
    Cursor receiving(in, segment_bytes(in.bytes));
    Deadline deadline{};
    policy_.moved();  // the time since the last exchange was not a wait
    has_looked_ahead_ = false;
    while (true) {
      const bool has_moved = move(sending, receiving);
      if (receiving.is_done() && sending.is_done() && (out.count == 0 || channel_->is_drained()))
        return;
      transport_->progress();
      if (has_moved) {
        policy_.moved();
        continue;
      }
      if (policy_.spin()) continue;  // as operations do
      if (deadline == Deadline{}) deadline = Clock::now() + timeout_;
      if (!policy_.pause(*transport_, *store_, deadline)) throw late(sending, receiving);
    }
  }

 private:
  // The same segments as for an operation of a communicator, so that the two levels compare.
  std::size_t segment_bytes(std::size_t bytes) const {
    const Schedule message = direct_message({.rank = 0, .size = kRanks, .root = 0, .peer = 1});
    return SegmentRule::of(channel_->capabilities()).bytes(message, bytes, segment_bytes_);
  }

  // Moves one segment each way, if the channel can.
  bool move(Cursor& sending, Cursor& receiving) {
    bool has_moved = false;
    if (!sending.is_done() && channel_->send(sending.segment())) {
      sending.step();
      has_moved = true;
    }
    if (!receiving.is_done() && channel_->receive(receiving.segment())) {
      receiving.step();
      has_looked_ahead_ = false;
      has_moved = true;
    } else if (!has_looked_ahead_) {
      look_ahead(receiving);
      has_looked_ahead_ = true;
    }
    return has_moved;
  }

  // Preposts receives, as a blocked operation does.
  void look_ahead(Cursor receiving) const {
    if (expecting_ == nullptr) return;
    for (std::size_t ahead = 0; ahead <= expecting_->expected_segments(); ++ahead) {
      if (receiving.is_done() || !expecting_->expect(ahead, receiving.segment())) return;
      receiving.step();
    }
  }

  Error late(const Cursor& sending, const Cursor& receiving) const {
    const bool sends = receiving.is_done();
    const Cursor& one = sends ? sending : receiving;
    return {ErrorCode::kDeadline, 1 - rank_,
            fmt::format("rank {}: {} rank {} ({}) came to message {} of {}, {} each, in {:.1f} s; "
                        "is rank {} stopped? Or raise --timeout",
                        rank_, sends ? "sending to" : "receiving from", 1 - rank_,
                        transport_->name(), std::min(one.message() + 1, one.messages().count),
                        one.messages().count, format_bytes(one.messages().bytes),
                        std::chrono::duration<double>(timeout_).count(), 1 - rank_)};
  }

  int rank_;
  std::chrono::milliseconds timeout_;
  std::size_t segment_bytes_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<Transport> transport_;
  Channel* channel_ = nullptr;
  PrepostedReceives* expecting_ = nullptr;  // the same channel, if it supports preposted receives
  WaitPolicy policy_;
  bool has_looked_ahead_ = false;
};

// On a device messages are enqueued on a stream, which runs them in order: a receive delays the
// sends after it, also between streams of one communicator. So for both ways at once each way has
// its own communicator and stream, made on first use.
class MessagePipe final : public Pipe {
 public:
  explicit MessagePipe(const PipeRequest& request)
      : rank_(request.rank),
        device_(request.device),
        communicator_(request.rank, kRanks, request.store, options(request)),
        call_(on(device_)) {}

  std::string level() const override { return "messages"; }
  std::string transport() const override { return std::string(communicator_.transport()); }
  std::string carrier() const override { return communicator_.carrier(); }
  bool enqueues() const override { return device_ != nullptr; }

  void write_records() override {
    communicator_.write_records();
    if (beside_) beside_->write_records();
  }

  void exchange(const Messages& out, const Messages& in) override {
    if (out.count > 0 && in.count > 0)
      return enqueues() ? enqueue_both(out, in) : exchange_both(out, in);
    const Way way{communicator_, call_};
    for (std::size_t i = 0; i < out.count; ++i) send(way, out, i);
    for (std::size_t i = 0; i < in.count; ++i) receive(way, in, i);
  }

  void finish() override {
    if (device_ != nullptr) device_->wait();
    if (device_beside_ != nullptr) device_beside_->wait();
  }

 private:
  static CommunicatorOptions options(const PipeRequest& request) {
    CommunicatorOptions result;
    result.transport = request.transport;
    result.name = "bench";
    result.timeout = request.timeout;
    result.segment_bytes = request.segment_bytes;
    if (request.device != nullptr) result.device = request.device->rank_device();
    return result;
  }

  static CallOptions on(const std::shared_ptr<DeviceMemory>& device) {
    CallOptions call;
    if (device != nullptr) call.stream = DeviceStream{device->stream()};
    return call;
  }

  struct Way {
    Communicator& by;
    const CallOptions& call;
  };

  void send(const Way& way, const Messages& out, std::size_t i) const {
    way.by.send({out.first + i * out.bytes, out.bytes, ElementType::kUint8}, 1 - rank_, way.call);
  }

  void receive(const Way& way, const Messages& in, std::size_t i) const {
    way.by.receive({in.first + i * in.bytes, in.bytes, ElementType::kUint8}, 1 - rank_, way.call);
  }

  void exchange_both(const Messages& out, const Messages& in) {
    std::vector<Work> works;
    works.reserve(out.count + in.count);
    for (std::size_t i = 0; i < std::max(out.count, in.count); ++i) {
      if (i < in.count) {
        works.push_back(communicator_.receive_async(
            {in.first + i * in.bytes, in.bytes, ElementType::kUint8}, 1 - rank_));
      }
      if (i < out.count) {
        works.push_back(communicator_.send_async(
            {out.first + i * out.bytes, out.bytes, ElementType::kUint8}, 1 - rank_));
      }
    }
    for (Work& work : works) work.wait();
  }

  // Alternates sends and receives, as a host may be only a few messages ahead of its peer's.
  void enqueue_both(const Messages& out, const Messages& in) {
    if (!beside_) {
      beside_.emplace(communicator_.duplicate());
      device_beside_ = device_->beside();
    }
    const CallOptions call_beside = on(device_beside_);
    const Way from_rank_0{communicator_, call_};
    const Way from_rank_1{*beside_, call_beside};
    const Way& there = rank_ == 0 ? from_rank_0 : from_rank_1;
    const Way& back = rank_ == 0 ? from_rank_1 : from_rank_0;
    for (std::size_t i = 0; i < std::max(out.count, in.count); ++i) {
      if (i < out.count) send(there, out, i);
      if (i < in.count) receive(back, in, i);
    }
  }

  const int rank_;
  const std::shared_ptr<DeviceMemory> device_;
  std::shared_ptr<DeviceMemory> device_beside_;
  Communicator communicator_;
  std::optional<Communicator> beside_;
  const CallOptions call_;
};

}  // namespace

void meet_by(Pipe& pipe, Store& store, int rank, const std::string& key, Deadline deadline) {
  constexpr int kCallsPerLook = 256;
  store.set(fmt::format("{}/{}", key, rank), "here");
  const std::string other = fmt::format("{}/{}", key, 1 - rank);
  while (!store.try_get(other)) {
    for (int i = 0; i < kCallsPerLook; ++i) pipe.get_on();
    if (const auto failure = store.failure()) throw Error(ErrorCode::kAborted, kNoPeer, *failure);
    if (Clock::now() > deadline) {
      throw Error(ErrorCode::kDeadline, 1 - rank,
                  fmt::format("rank {} did not reach the end of '{}' over {}", 1 - rank, key,
                              pipe.library()));
    }
    ::sched_yield();
  }
}

std::unique_ptr<Pipe> make_segment_pipe(const PipeRequest& request) {
  return std::make_unique<SegmentPipe>(request);
}

std::unique_ptr<Pipe> make_message_pipe(const PipeRequest& request) {
  return std::make_unique<MessagePipe>(request);
}

std::unique_ptr<Pipe> make_library_pipe(const PipeRequest& request) {
  return request.transport == "ucx" ? make_ucx_pipe(request) : make_libfabric_pipe(request);
}

}  // namespace kolo::bench
