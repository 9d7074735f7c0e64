// What an engine has for operations on its device's streams: the device, its mathematics, schedules
// compiled for them, and all that is yet to come of what was given: openings from other ranks, and
// the device's end of it.
//
// An operation is *given* when all of it is in the stream, and *over* when the device has done it
// and every opening of it has come and was right. One is given at a time, in the order of issue;
// many are given and not over.
//
// Openings. Every channel direction of an operation begins with one (call_header.h). Where the
// streams' segments are those of the host's channel (StreamChannel::is_one_with_host), the opening
// is such a segment: copied by the stream from pinned memory or to it, and looked at when the
// operation is over. Elsewhere it goes over the host's channel, at once, and is looked at when it
// comes; it says that the data are on a stream, so that a host call that meets it is told.
//
// Captured work. A call on a stream that is being captured into a graph is given like all others,
// through slots and by executors of its own, whose scratch no live call shares. Its openings go
// once, with the capture: ranks are known then to have captured the same, and no host has a part in
// the replays. So it is over when they have come; of replays nothing is followed here.
//
// Threading: require_places() and is_plain() under the engine's lock, the rest by who drives.
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

namespace kolo {

class StreamQueue {
 public:
  // Operations by which this rank's host may be ahead of a peer's that has yet to say what it
  // calls; less where the channel's credit is less.
  static constexpr std::size_t kMaxOperationsAhead = 16;

  // Error kUnavailable where there is no such device, in words.
  StreamQueue(const RankDevice& wanted, int rank);
  // Waits for the device, if nothing is at work there any more; else what it uses stays until the
  // process ends.
  ~StreamQueue();
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  // The device with the number that it came to.
  std::shared_ptr<const RankDevice> device() const { return own_->device; }
  DeviceRequest request() const;
  std::string describe_peer_access() const;

  // With the channels of the transport that was made; borrowed. Error kUnavailable where one has no
  // stream.
  void meet(std::span<Channel* const> channels);
  // The streams' segments are the host channels': streams move while hosts make progress.
  bool is_one_with_host() const { return is_one_with_host_; }
  // What the planner of calls on streams goes by, where no host carries their data. `devices`: of
  // all ranks, as describe_peer_access() says them.
  Costs costs(std::span<const std::string> devices) const;
  void suit(PlannerInputs& situation) const;

  // Finds out whether the call is captured. std::invalid_argument for buffers that are not where
  // the call says, or a capture of what cannot be replayed; Error kSystem for a stream that is
  // none. Nothing is sent.
  void require_places(Call& call);
  // Memory that the driver does not know: the host's, and neither pinned nor managed.
  bool is_plain(const void* memory) const {
    return memory == nullptr || !own_->at->is_known(memory);
  }

  // What a stream may send before the peer's has received any of it.
  std::size_t held_bytes() const;
  void copy(const Call& call);

  // The executor of a schedule, made where there is none yet.
  StreamExecutor& find(const PlanCache::Key& key, bool is_captured, const PlanCache& plans);

  // While the result lives this thread's calls find the device's context (cuda::Device::Entered).
  cuda::Device::Entered enter() const { return cuda::Device::Entered(*own_->at); }

  // Begins to give one; the one before has been given. Entered, as advance() is: the driver is then
  // asked for the context once, and scratch may be allocated beside a capture.
  void start(const Operation& operation);
  // Gives as much as can be given; true once that is all.
  bool advance(const Operation& operation);
  std::uint64_t moves() const { return moves_; }
  // What advance(), or a host's operation that is_expecting() holds up, waits for.
  int awaited_peer() const { return awaited_peer_; }
  std::string describe_wait() const { return awaited_; }

  // Of the one given last: keeps it until it is over, for who waits for it; null: nobody does.
  void hand_over(const Operation& operation, std::shared_ptr<Operation> waited_for);

  // Looks at the openings that have come. Error kMismatch, kProtocol.
  void read_headers();
  // The opening of an earlier operation is yet to come on this channel.
  bool is_expecting(const Channel& channel) const;
  // The same, for a host's operation that must not take it for its own.
  bool holds_up(const Executor& executor);

  // The next operation that is over, of those that somebody waits for; null where there is none
  // now. Error kMismatch, kProtocol, kSystem.
  std::shared_ptr<Operation> take_over();
  // All of them, over or not: for the end.
  std::vector<std::shared_ptr<Operation>> take_all();

  struct Pending {
    const CallHeader* header = nullptr;
    int peer = kNobody;  // who has not opened; kNobody: the device is at it
    Deadline deadline{};
    std::chrono::milliseconds timeout{};
  };
  // What ends first if nothing comes: an opening, or an operation that somebody waits for.
  std::optional<Pending> next_due() const;
  // Who has not opened an operation that is given; kNobody: all have.
  int peer_without_header(const CallHeader& header) const;
  // Given, and not over; or over, and what was sent has yet to leave, which a host does that
  // carries it.
  bool has_unfinished() const { return !given_.empty() || is_leaving_; }
  // Something was captured: a replay may be at work, of which nobody knows.
  bool has_captured() const { return has_captured_; }
  // The first that the device is yet to do; null where there is none.
  const CallHeader* first_at_work() const;

  // What calls on streams have given for this peer and from it: payload, counted as it is given.
  const ChannelStatistics& given_to(int peer) const {
    return counts_[static_cast<std::size_t>(peer)];
  }
  std::uint64_t header_bytes_sent() const { return header_bytes_sent_; }
  std::uint64_t header_bytes_received() const { return header_bytes_received_; }

 private:
  struct Plan {
    PlanCache::Key key;
    bool is_captured = false;
    ServerPlan servers;
    std::unique_ptr<StreamExecutor> executor;
  };

  // An opening in pinned memory, on its way through a stream.
  struct Cell {
    std::byte* bytes = nullptr;
    std::byte* seen = nullptr;  // where the device sees them
    int from = kNobody;         // kNobody: it goes out
    CallHeader expected{};
  };

  struct Given {
    CallHeader header;
    bool has_own_lengths = false;
    std::size_t recorded = 0;  // its number there, where somebody wants to know
    const StreamExecutor* executor = nullptr;
    Deadline deadline{};
    std::chrono::milliseconds timeout{};
    void* stream = nullptr;
    bool is_given = false;
    bool is_captured = false;  // then there is no event
    cuda::Event event = nullptr;
    std::size_t unread = 0;  // openings that have not come
    std::vector<Cell> cells;
    std::shared_ptr<Operation> waited_for;
  };

  struct Expected {
    std::uint64_t number = 0;  // of given_
    CallHeader header;
  };

  // What streams use: stays where they may be at it for ever.
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

  void require_replays(const Call& call) const;
  void require_place(const Call& call, const char* name, const void* data, std::size_t bytes);
  void note_header_attempt();
  void record_header(int to, int from);
  bool send_header_on_stream(void* stream);
  bool receive_header_on_stream(int peer);
  bool send_header_on_host();
  std::size_t max_pending_headers(int peer) const;
  void expect_headers();
  Cell& make_cell(Given& given);
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

  std::vector<std::uint64_t> known_buffers_;  // on the device, by number, the last ones
  std::size_t next_known_ = 0;

  std::map<std::uint64_t, Given> given_;  // by number, in the order of issue
  std::uint64_t number_ = 0;              // of the one that is being given, or was last
  bool has_captured_ = false;
  bool is_leaving_ = false;                     // as far as is known
  std::size_t waited_for_ = 0;                  // of them, those with somebody who waits
  std::vector<int> to_open_;                    // peers that the current one is yet to open
  Recorder* recorder_ = nullptr;                // of all operations; null: nobody wants to know
  Clock::time_point header_tried_{};            // first, of the opening that is to be given next
  Clock::time_point header_worked_{};           // last
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

}  // namespace kolo
