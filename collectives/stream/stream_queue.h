// Queue of an engine's operations on its device's streams. It owns the device, its kernels and the
// compiled schedules. It watches enqueued operations: expected call headers, and the device's
// progress.
//
// States. An operation is *given* when all of it is enqueued on the stream. It is *over* when the
// device has done it and every call header of it has arrived and matched. Operations are given one
// at a time, in the order of issue. Many may be given and not over.
//
// Call headers (call_header.h) open every channel direction of an operation. If the streams use the
// host channel's segments (StreamChannel::is_one_with_host), a header is such a segment. The stream
// copies it from or to pinned memory, and the host checks it when the operation is over. Otherwise
// the header travels over the host's channel at once, and is checked when it arrives. It states
// that the data is on a stream, so that a host call that receives it reports the mismatch.
//
// Captured work. A call on a stream that is being captured into a graph is given like others. But
// it uses slots and executors of its own, whose scratch no live call shares. Its headers travel
// once, at capture: all ranks then have captured the same call, and no host takes part in replays.
// So it is over when its headers have arrived. Replays are not watched.
//
// Threading: require_places() and is_plain() need the engine's lock; the driver calls the rest.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/engine/checked_call.h"
#include "collectives/engine/operation.h"
#include "collectives/executor/plan_cache.h"
#include "collectives/planner/planner.h"
#include "collectives/rank_device.h"
#include "collectives/stream/stream_executor.h"
#include "transports/cuda/device.h"
#include "transports/registry.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

class StreamQueue {
 public:
  // Most operations that this rank's host enqueues ahead of a peer that has sent no header for
  // them. The limit is lower if the channel's credit is lower.
  static constexpr std::size_t kMaxOperationsAhead = 16;

  // Throws Error kUnavailable, with the reason, if there is no such device.
  StreamQueue(const RankDevice& wanted, int rank);
  // Waits a limited time for the device. If it still works, all that it uses is kept until the
  // process ends. Memory is freed when no stream of this process waits for a peer.
  ~StreamQueue();
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  // The device, with the number that was chosen.
  std::shared_ptr<const RankDevice> device() const { return own_->device; }
  DeviceRequest request() const;
  std::string describe_peer_access() const;

  // Connects to the transport's channels; borrowed. Throws Error kUnavailable if one does not
  // support streams, and kSystem if there is not enough memory.
  void meet(std::span<Channel* const> channels);
  // Streams use the host channels' segments, so streams advance only while hosts make progress.
  bool is_one_with_host() const { return is_one_with_host_; }
  // Planner costs for calls on streams, if no host carries their data. `devices`: of all ranks, as
  // describe_peer_access() formats them.
  Costs costs(std::span<const std::string> devices) const;
  void suit(PlannerInputs& situation) const;

  // Sets call.is_captured. Throws std::invalid_argument for buffers that are in the wrong memory,
  // or for a captured call that cannot be replayed, and Error kSystem for an invalid stream. Sends
  // nothing.
  void require_places(Call& call);
  // Memory that the driver does not know: host memory that is neither pinned nor managed.
  bool is_plain(const void* memory) const {
    return memory == nullptr || !own_->at->is_known(memory);
  }

  // Bytes that a stream may send before the peer's stream has received any.
  std::size_t held_bytes() const;
  void copy(const Call& call);

  // The executor of a call's schedule, made at first use.
  StreamExecutor& find(const Call& call, const PlanCache::Key& key, const PlanCache& plans);

  // While the result lives, the device's context is current in this thread (cuda::Device::Entered).
  cuda::Device::Entered enter() const { return cuda::Device::Entered(*own_->at); }

  // Begins to enqueue an operation; the previous one must be given. The caller must hold enter(),
  // also for advance(). So the context is set once, and scratch may be allocated during a capture.
  void start(const Operation& operation);
  // Enqueues as much as possible; true once all is enqueued.
  bool advance(const Operation& operation);
  std::uint64_t moves() const { return moves_; }
  // The peer and text of a wait in advance(), or in a host operation that holds_up() delays.
  int awaited_peer() const { return awaited_peer_; }
  std::string describe_wait() const { return awaited_; }

  // Hands over the operation given last. `waited_for`: kept until it is over; null: no Work waits.
  void hand_over(const Operation& operation, std::shared_ptr<Operation> waited_for);

  // Reads call headers that have arrived. Throws Error kMismatch, kProtocol.
  void read_headers();
  // True if a header of an earlier operation is still expected on this channel.
  bool is_expecting(const Channel& channel) const;
  // The same for the channels of a host operation, which must not read that header as its own.
  bool holds_up(const Executor& executor);

  // The next operation with a waiting Work that is over; null if there is none now. Throws Error
  // kMismatch, kProtocol, kSystem.
  std::shared_ptr<Operation> take_over();
  // All operations with a waiting Work, over or not; for the engine's failure.
  std::vector<std::shared_ptr<Operation>> take_all();

  struct Pending {
    const CallHeader* header = nullptr;
    int peer = kNobody;  // has not sent its header; kNobody: the device is not done
    Deadline deadline{};
    std::chrono::milliseconds timeout{};
  };
  // The earliest deadline of an expected header, or of an operation with a waiting Work.
  std::optional<Pending> next_due() const;
  // A rank that has not sent its header for a given operation; kNobody: all have.
  int peer_without_header(const CallHeader& header) const;
  // True if an operation is given and not over. Also true if all are over, but a host that carries
  // the data has not sent all of it yet.
  bool has_unfinished() const { return !given_.empty() || is_leaving_; }
  // True if any call was captured: a replay may be running, unknown to the host.
  bool has_captured() const { return has_captured_; }
  // Header of the first operation that the device has not done; null if there is none.
  const CallHeader* first_at_work() const;

  // Payload of calls on streams to and from this peer, counted when enqueued.
  const ChannelStatistics& given_to(int peer) const {
    return counts_[static_cast<std::size_t>(peer)];
  }
  std::uint64_t header_bytes_sent() const { return header_bytes_sent_; }
  std::uint64_t header_bytes_received() const { return header_bytes_received_; }

 private:
  struct Plan {
    PlanCache::Key key;
    bool is_captured = false;
    bool can_answer = false;
    ServerPlan servers;
    std::unique_ptr<StreamExecutor> executor;
  };

  // A call header in pinned memory, on its way through a stream.
  struct Cell {
    std::byte* bytes = nullptr;
    std::byte* seen = nullptr;  // the device's address of `bytes`
    int from = kNobody;         // kNobody: it is sent
    CallHeader expected{};
  };

  struct Given {
    CallHeader header;
    bool has_own_lengths = false;
    std::size_t recorded = 0;  // its number in the recorder
    const StreamExecutor* executor = nullptr;
    Deadline deadline{};
    std::chrono::milliseconds timeout{};
    void* stream = nullptr;
    bool is_given = false;
    bool is_captured = false;  // no event then
    cuda::Event event = nullptr;
    std::size_t unread = 0;  // headers that have not arrived
    std::vector<Cell> cells;
    std::shared_ptr<Operation> waited_for;
  };

  struct Expected {
    std::uint64_t number = 0;  // key in given_
    CallHeader header;
  };

  // All that streams use. It is leaked if the device may use it forever.
  struct Own {
    std::shared_ptr<cuda::Driver> driver;
    std::shared_ptr<const RankDevice> device;
    std::unique_ptr<cuda::Device> at;
    std::unique_ptr<DeviceMath> math;
    std::vector<Plan> plans;
    std::vector<std::byte*> pinned;
    Own* next = nullptr;
    ~Own();
  };
  static void keep(std::unique_ptr<Own> stuck) noexcept;

  bool answers(const Call& call, const PlanCache::Key& key) const;
  void require_replays(const Call& call) const;
  void require_place(const Call& call, const char* name, const void* data, std::size_t bytes);
  void note_header_attempt();
  void record_header(int to, int from);
  bool send_header_on_stream(void* stream);
  bool receive_header_on_stream(int peer);
  bool send_header_on_host();
  std::size_t max_pending_headers(int peer) const;
  void expect_headers();
  void make_cells(std::size_t count);
  Cell& take_cell(Given& given);
  CallHeader header_for(const Given& given, std::size_t elements) const;
  void compare(int peer, const std::byte* opening, const CallHeader& mine) const;
  bool is_over(const Given& given) const;
  bool has_all_left() const;
  bool has_left(Given& given) noexcept;
  void forget(Given& given) noexcept;
  bool wait_for(int peer, std::string what);
  Given& current() { return given_.at(number_); }

  const int rank_;
  std::unique_ptr<Own> own_;
  std::span<Channel* const> channels_;
  std::vector<StreamChannel*> streams_;
  bool is_one_with_host_ = false;
  std::size_t slot_bytes_ = 0;

  std::vector<std::uint64_t> known_buffers_;  // recently seen device allocations, by number
  std::size_t next_known_ = 0;

  std::map<std::uint64_t, Given> given_;  // by number, in the order of issue
  std::uint64_t number_ = 0;              // of the current operation, given last or being given
  bool has_captured_ = false;
  bool is_leaving_ = false;                     // data may still leave through a host
  std::size_t waited_for_ = 0;                  // operations in given_ with a waiting Work
  std::vector<int> to_open_;                    // peers that need the current operation's header
  Recorder* recorder_ = nullptr;                // null: off
  Clock::time_point header_tried_{};            // first try to send the next header
  Clock::time_point header_worked_{};           // last try
  std::vector<std::deque<Expected>> expected_;  // by rank
  std::vector<cuda::Event> idle_events_;
  std::vector<Cell> idle_cells_;

  std::vector<ChannelStatistics> counts_;  // by rank
  std::uint64_t moves_ = 0;
  std::uint64_t header_bytes_sent_ = 0;
  std::uint64_t header_bytes_received_ = 0;
  int awaited_peer_ = kNobody;
  std::string awaited_;
};

}  // namespace kolo::inline v0
