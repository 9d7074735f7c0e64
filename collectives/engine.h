// The engine of a communicator: its transport, its plans, its queue of operations, and how they
// end.
//
// Operations run one at a time, in the order of issue. Who needs one to be done *drives*: a single
// thread at a time has that role, and only it touches transport, channels and executors. Others
// leave their operation in the queue and wait for it, or for the role. A progress thread, if asked
// for, drives while nobody else wants to.
//
// Failure. The first cause that reaches the store is the job's; everybody throws its text. Whoever
// drives and meets an error asks the store for an earlier cause, posts its own where there is none,
// makes the transport let go of all memory, and ends every operation in the queue with it. The
// engine is poisoned from then on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/operation.h"
#include "collectives/plan_cache.h"
#include "transports/error.h"
#include "transports/rendezvous.h"
#include "transports/transport.h"
#include "transports/waiting.h"

namespace kolo {

// A call as the user made it, already validated.
struct Call {
  Collective collective = Collective::kBarrier;
  std::uint8_t algorithm = 0;
  ElementType type = ElementType::kInt32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  std::size_t count = 0;
  const void* in = nullptr;
  void* out = nullptr;
  const ServerPlan* servers = nullptr;
  std::size_t segment_bytes = 0;  // 0: as the communicator chooses
};

class Engine {
 public:
  Engine(int rank, int size, std::shared_ptr<Store> store, const CommunicatorOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Transport& transport() const { return *transport_; }

  // Issues and waits. `operation` may hold an update.
  void run(const Call& call, Operation& operation);
  void issue(const Call& call, const std::shared_ptr<Operation>& operation);

  // Waits for one that was issued; Error kDeadline where `limit` comes before its end, which ends
  // nothing.
  void wait(Operation& operation, Deadline limit);

  // As far as it goes without blocking; true if anything is still in the queue.
  bool progress();

  void abort(std::string_view reason);

  // Ends what is in flight, says goodbye, closes the transport. Never throws, never waits for a
  // peer.
  void close() noexcept;

  CommunicatorStatistics statistics();

 private:
  enum class Until { kDone, kBlocked, kWanted };

  void connect();
  void push(const Call& call, Operation& operation);
  Operation* retire(Operation& operation, const Operation* awaited);
  void release_role();

  void drive(const Operation* awaited, Deadline limit, Until until);
  bool has_moved(const Operation& operation);
  bool is_wanted() const;
  bool pause(Operation& operation, Deadline limit);
  void compare_calls(Operation& operation);
  void serve();

  Error timed_out(const Operation& operation) const;
  Error explain(const Operation* operation, const std::exception_ptr& exception) const;
  Error settle(const Error& own);
  void fail(const Error& own);
  void abort_what_is_left();
  void leave() noexcept;

  const int rank_;
  const int size_;
  const CommunicatorOptions options_;
  const std::string host_;
  std::shared_ptr<Store> store_;

  // Of the one who drives.
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<WaitPolicy> policy_;
  std::vector<Channel*> channels_;  // by rank, null for this one
  std::uint64_t moves_ = 0;
  std::uint64_t idle_rounds_ = 0;

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::unique_ptr<PlanCache> plans_;
  Operation* head_ = nullptr;
  Operation* tail_ = nullptr;
  bool has_driver_ = false;
  bool is_closing_ = false;
  bool is_closed_ = false;
  std::atomic<int> waiters_{0};
  std::uint32_t sequence_ = 0;
  std::uint64_t finished_ = 0;
  std::optional<Error> poison_;
  std::thread thread_;
};

}  // namespace kolo
