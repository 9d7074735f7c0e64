// Engine of a communicator: owns its transport, its plans and its queue of operations.
//
// Order. Collectives run one at a time, in the order of issue. A collective waits for all
// operations before it, and all operations behind it wait for it. Consecutive messages in the queue
// run side by side, one per *direction* (to a peer, or from it). In one direction they keep the
// order of issue.
//
// Threading. A thread that waits for an operation takes the *driver role* if it is free. One thread
// at a time has the role, and only the driver touches transport, channels and executors. Other
// threads leave their operation in the queue, and wait for it or for the role. The optional
// progress thread drives while no other thread wants to.
//
// Failure. The first cause that reaches the store is the job's; all ranks throw its text. A driver
// that meets an error asks the store for an earlier cause, and posts its own if there is none. Then
// it makes the transport release all memory, and ends every operation in the queue with the cause.
// From then on every call throws the cause. So do all engines that were made from one another
// (job_failure.h): each ends its own queue when it is next called or driven.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/engine/call_cache.h"
#include "collectives/engine/checked_call.h"
#include "collectives/engine/fork_generation.h"
#include "collectives/engine/group_calls.h"
#include "collectives/engine/job_failure.h"
#include "collectives/engine/operation.h"
#include "collectives/executor/plan_cache.h"
#include "collectives/executor/recorder.h"
#include "collectives/planner/planner.h"
#include "collectives/stream/stream_queue.h"
#include "transports/base/event_descriptor.h"
#include "transports/base/topology.h"
#include "transports/base/waiting.h"
#include "transports/error.h"
#include "transports/rendezvous.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

// `options` with the timeout filled in and bounded. Throws std::invalid_argument for invalid
// options.
CommunicatorOptions validated_options(CommunicatorOptions options);

class Engine {
 public:
  Engine(int rank, int size, std::shared_ptr<Store> store, const CommunicatorOptions& options);
  // For a group of `parent`'s ranks, which `ranks` lists. The engine plans with the parent's
  // measured costs.
  Engine(int rank, Engine& parent, const CommunicatorOptions& options, std::vector<int> ranks);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // False in a child made by fork(): the child must not use the communicator.
  bool is_in_creating_process() const { return fork_generation() == made_in_; }

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Transport& transport() const { return *transport_; }
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) { return transport_->allocate(bytes); }
  std::span<const int> hosts() const { return placement_.hosts; }
  const CommunicatorOptions& options() const { return options_; }
  // The device for this rank's calls on streams; null: none.
  std::shared_ptr<const RankDevice> device() const {
    return streams_ ? streams_->device() : nullptr;
  }
  // Groups of these ranks meet over this store.
  const std::shared_ptr<Store>& store() const { return store_; }
  int job_rank(int rank) const {
    return members_.empty() ? rank : members_[static_cast<std::size_t>(rank)];
  }

  // The algorithm that a call of `bytes` runs if it names none; predict() lists all candidates.
  std::uint8_t choose(Collective collective, std::size_t bytes, ElementType type, ReduceOp op);
  std::vector<Prediction> predict(Collective collective, std::size_t bytes, ElementType type,
                                  ReduceOp op);
  const Costs& costs() const { return planner_.costs(); }

  // Issues the operation and waits for it. `operation` may hold an update.
  void run(Call& call, Operation& operation);
  // The fast path for a repeated call with default options (engine/fast_path.cpp): true once it has
  // run. False means that nothing was done: the caller must use run(), which also reports errors.
  bool run_cached(CallKey key, const void* in, void* out);
  // Issues a repeated call, as issue() does. Null means that nothing was done: use issue().
  static std::shared_ptr<Operation> issue_cached(const std::shared_ptr<Engine>& self, CallKey key,
                                                 const void* in, void* out);
  void issue(Call& call, const std::shared_ptr<Operation>& operation);
  // Runs both messages, or the copy, on the stream that they name.
  void exchange_on_stream(const checked_calls::Exchange& both);

  // Prepares a persistent operation; restart() issues it.
  void plan(const Call& call, Operation& operation);
  void restart(const std::shared_ptr<Operation>& operation);

  // Registers the callback. False if the operation has ended; the callback is not kept then.
  bool call_when_done(Operation& operation, const WorkCallback& callback);

  // Waits for an issued operation. Throws kDeadline if `limit` comes first; the operation goes on.
  void wait(Operation& operation, Deadline limit);
  // Waits until one of the issued operations has ended; false if `limit` comes first.
  bool wait_any(std::span<const Operation* const> operations, Deadline limit);

  // Advances the queue without blocking; true if anything is still in flight.
  bool progress();
  // For event loops: see Communicator::descriptor().
  int descriptor();

  void abort(std::string_view reason);
  // The same for a failure that the caller has detected, with the rank of this communicator that
  // caused it.
  void abort(ErrorCode code, int peer, std::string_view reason);
  // See Communicator::stop().
  void stop(std::string_view reason);
  // The job's failure, if the store knows it at once. From then on this rank knows it too.
  std::optional<Error> failure();
  // Throws the job's failure if this rank knows one. All operations in flight here have ended with
  // it, or are about to end if another thread or the caller of a callback drives.
  void require_alive() {
    if (failure_->is_known()) [[unlikely]]
      fail_with_job();
  }

  // Ends what is in flight, says goodbye to the peers and closes the transport. Never throws, never
  // waits for a peer.
  void close() noexcept;
  // close() for the last holder. Inside a callback the driver finishes closing after the callback
  // returns. The progress thread cannot be joined there, so it keeps the engine until its own end.
  static void close(std::shared_ptr<Engine> engine) noexcept;

  // Each waits until no other thread drives (engine/statistics.cpp).
  CommunicatorStatistics statistics();
  PeerStatistics peer_statistics(int peer);
  std::vector<StepProfile> step_profile();
  void write_records();

 private:
  enum class Until { kDone, kOneEnded, kBlocked, kWanted };
  // The communicator that a group comes from, and the call there.
  struct GroupOrigin {
    Engine& parent;
    GroupCall call;
  };
  struct AskedCall {
    int peer;
    std::shared_ptr<const Store::Answer> answer;
    bool is_about_group = false;  // the group that the peer makes, not its call
  };

  void begin(const std::function<void()>& steps);
  Error at_start(const Error& error) const;
  void settle_current_exception() noexcept;
  void start_progress_thread();
  void meet(Store& store, GroupOrigin* origin = nullptr);
  void connect(Deadline deadline, GroupOrigin* origin);
  void agree_on_limits(Deadline deadline);
  PlannerInputs situation() const;
  void plan_streams(const Costs& costs);
  void agree_on_planner(Store& job, Deadline deadline);
  std::string publish_plan(Store& job);
  std::string fetch_plan(Deadline deadline);
  Costs probe(Deadline deadline);
  void count_bytes(CommunicatorStatistics& sum) const;
  void look(const std::function<void()>& at);
  void make_recorder();
  void write_timeline();
  void choose(Call& call);
  RankOrder order_of(const Call& call) const;
  RankOrder order_of(Collective collective, ElementType type, ReduceOp op) const;
  void find_executor(const Call& call, Operation& operation);
  std::size_t direction_of(const Call& call) const;
  void prepare(Call& call, Operation& operation);
  void link(Operation& operation);
  void unlink(Operation& operation);
  void wake_for(const Operation& operation);
  CallHeader header_of(const Call& call, const Schedule& schedule);
  std::shared_ptr<Operation> take_out(Operation& operation);
  Operation* retire(Operation& operation, const Operation* awaited);
  void end(Operation& operation, std::unique_lock<std::mutex>& lock);
  void await_driver(std::unique_lock<std::mutex>& lock, Deadline limit);
  void end_job(const Error& own);
  void release_role();
  void give_up_role();
  void arm_event_descriptor(std::unique_lock<std::mutex>& lock);
  bool look_idle(std::unique_lock<std::mutex>& lock);
  Deadline next_look();

  void cache_call(const Call& call, const Operation& operation);
  bool advance_soon(Executor& executor);
  std::uint32_t next_sequence(std::size_t direction);
  void put_in_queue(const std::shared_ptr<Operation>& operation);
  bool is_next(std::size_t direction) const;
  bool is_apart_from_streams(const void* in, const void* out) const;
  bool start_at_once(Executor& executor, const CallHeader& header, std::uint32_t sequence,
                     const void* in, void* out);
  bool finish_at_head(Operation& operation, std::unique_lock<std::mutex>& lock);
  static bool may_end_under_lock(const Operation& operation);
  void fail_in_queue(Operation& operation, const std::exception_ptr& failure,
                     std::unique_lock<std::mutex>& lock);
  void continue_in_queue(const CachedCall& known, std::uint32_t sequence, const void* in, void* out,
                         const std::exception_ptr& failure, std::unique_lock<std::mutex>& lock);
  void finish_in_queue(Operation& operation, const std::exception_ptr& failure,
                       std::unique_lock<std::mutex>& lock);
  WaitStatistics& waits_for(int awaited);

  // Operations on streams: engine/stream_operations.cpp.
  void make_streams();
  void join_devices();
  void require_places(Call& call);
  bool give(Operation& operation);
  Operation* hand_over(Operation& operation, const Operation* awaited);
  bool is_following(const Operation* awaited, Until until) const;
  bool follow_streams(const Operation* awaited);
  bool wait_beside_streams(Deadline until);
  int awaited_peer(const Operation& operation) const;
  std::string describe_wait(const Operation& operation) const;
  std::string describe_location(const Operation& operation) const;
  Error timed_out(const StreamQueue::Pending& pending) const;
  void fail_on_streams(const Error& cause, std::unique_lock<std::mutex>& lock);

  Operation* first_in_queue();
  void look_for_stray(const Executor& executor, const CallHeader& done);
  void look_for_strays_before(const Operation& blocked);
  void check_stray(Channel& channel, const CallHeader& done) const;
  bool is_driving() const { return driver_ == std::this_thread::get_id(); }
  void require_not_driving(std::string_view what) const;

  void drive(const Operation* awaited, Deadline limit, Until until);
  Operation* advance(Operation& operation, const Operation* awaited);
  Operation* advance_messages(Operation& head, const Operation* awaited);
  void admit_messages(Operation& head);
  void finish_message(std::size_t index);
  static void start(const Operation& operation);
  bool run_at_hand(Operation& operation);
  bool is_wanted() const;
  bool look_after(std::span<Operation* const> running, Deadline limit, bool pauses);
  static bool has_been_away(Operation& operation);
  void publish_awaited_peers(std::span<Operation* const> running);
  void compare_calls(const Operation& operation);
  void read_peer_calls(const CallHeader& mine);
  void compare(const CallHeader& mine, int peer, std::string_view said) const;

  // Making groups: engine/group_calls.cpp.
  std::vector<int> job_ranks(std::span<const int> ranks) const;
  void meet_members(GroupOrigin& origin, Deadline deadline,
                    const std::function<void(Deadline)>& meet);
  void begin_group(GroupCall& mine);
  void compare_group(const GroupCall& mine);
  bool has_made(const GroupCall& call);
  void compare_with_group(const CallHeader& mine, int peer, std::string_view said);
  void serve();

  std::vector<int> receive_cycle(int peer, Deadline until) const;
  std::string diagnose_timeout(const Operation& operation, int last, Deadline until) const;
  Error timed_out(const Operation& operation) const;
  Error with_missing_connections(const Error& error) const;
  Error out_of_memory(const std::string& where) const;
  Error explain(const Operation* operation, const std::exception_ptr& exception) const;
  Error settle(Error own);
  Error find_cause(const Error& own, int peer);
  void note_exception() noexcept;
  Error with_group_ranks(const Error& error) const;
  void fail(const Error& own);
  [[noreturn]] void fail_with_job();
  void abort_what_is_left();
  bool is_in_flight();
  void say_goodbye() noexcept;
  void finish_closing() noexcept;
  void leave() noexcept;

  const std::uint64_t made_in_ = fork_generation();
  const int rank_;
  const int size_;
  CommunicatorOptions options_;  // constant after construction
  const std::string host_;
  const std::vector<int> members_;
  const int exceptions_ = std::uncaught_exceptions();  // on the thread that made it
  std::string key_prefix_;  // "NAME/USE/": prefix of this communicator's keys in the store
  std::shared_ptr<Store> store_;
  Topology placement_;
  const std::shared_ptr<JobFailure> failure_;

  // Used by the driver only.
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<WaitPolicy> policy_;
  // Null until descriptor() is called. Set under the lock while no thread drives.
  std::unique_ptr<EventDescriptor> event_descriptor_;
  std::vector<Channel*> channels_;        // by rank, null for this one
  std::vector<WaitStatistics> waits_;     // by rank; the last one counts waits for no peer
  std::unique_ptr<StreamQueue> streams_;  // null: this rank has no device
  std::unique_ptr<Recorder> recorder_;    // null: no profile and no timeline
  bool is_timeline_written_ = false;
  std::size_t next_looked_at_ = 0;  // index into channels_: where to look for stray headers
  CallHeader last_done_;
  std::atomic<std::thread::id> closer_{};  // a driver that closed the engine in a callback
  std::vector<AskedCall> asked_calls_;     // for the blocked collective
  Operation* at_hand_ = nullptr;           // the running operation, named in errors
  bool has_moved_ = false;                 // since the last pause
  bool has_ended_one_ = false;             // an operation, since drive() was called
  std::uint64_t idle_rounds_ = 0;
  // The messages in the queue before its first collective, as far as the driver has seen them.
  std::vector<Operation*> running_;        // the first of each direction; within reserved capacity
  std::vector<Operation*> last_messages_;  // by direction; null: none
  Operation* last_seen_ = nullptr;         // in the order of the queue

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::unique_ptr<PlanCache> plans_;
  CallCache call_cache_;
  std::shared_ptr<Operation> spare_;  // reused by the next repeated asynchronous call
  Planner planner_;
  std::optional<Planner> stream_planner_;  // none: calls on streams use planner_
  CommunicatorStatistics probed_;          // bytes moved by the probe
  Operation* head_ = nullptr;
  Operation* tail_ = nullptr;
  bool has_driver_ = false;
  std::atomic<std::thread::id> driver_{};  // the driver's thread
  bool is_closing_ = false;
  bool is_closed_ = false;
  std::atomic<int> waiters_{0};
  std::uint32_t sequence_ = 0;                                   // collectives issued so far
  std::map<std::string, std::int64_t, std::less<>> group_uses_;  // how often by name
  std::vector<std::uint32_t>
      messages_;  // issued so far, by direction: to rank p at 2 p, from p at 2 p + 1
  // In the queue now: collectives, and messages by direction.
  std::uint32_t queued_collectives_ = 0;
  std::vector<std::uint32_t> queued_messages_;
  std::uint32_t ran_beside_others_ = 0;  // messages on the fast path
  std::uint64_t finished_ = 0;
  bool has_given_ = false;    // operations that are enqueued on streams and unfinished
  bool may_replay_ = false;   // captured operations that a graph may replay
  bool is_poisoned_ = false;  // has failed: the queue is and stays empty
  std::thread thread_;
  std::shared_ptr<Engine> keep_;  // keeps this engine alive for the progress thread, see close()
};

}  // namespace kolo::inline v0
