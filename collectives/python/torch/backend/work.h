// Work handle of a call of torch.distributed: one or more operations of kolo.
#pragma once

#include <ATen/ThreadLocalState.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "collectives/c/kolo.h"
#include "collectives/python/torch/backend/failures.h"

namespace kolo_torch {

using Milliseconds = std::chrono::milliseconds;

// Longer than any job: kolo's own timeout of messages, whose works have a timeout of their own.
inline constexpr std::int64_t kNever = 3'000'000'000'000;

// Threads that complete futures. Callbacks of a future are the user's code, which may wait for
// other operations; the thread that drives kolo must not. A thread is started when a future is to
// be completed and no thread is idle, and ends when it has been idle for some seconds.
class FutureThreads : public std::enable_shared_from_this<FutureThreads> {
 public:
  void run(std::function<void()> task);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  int idle_ = 0;
};

// Number of works in flight.
class InFlight {
 public:
  void add();
  void remove();
  // False: some are in flight after `timeout`.
  bool wait_until_none(Milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// What the works of a group share.
struct Group {
  GroupName name;
  std::shared_ptr<FutureThreads> futures = std::make_shared<FutureThreads>();
  std::shared_ptr<InFlight> in_flight = std::make_shared<InFlight>();
};

struct WorkKind {
  c10d::OpType type;
  const char* title;  // in profiles: "kolo:all_reduce"
};

// The tensors and the kolo works live until the operations have ended: their callbacks hold the
// handle. The destructor joins no thread.
class KoloWork : public c10d::Work {
 public:
  KoloWork(std::shared_ptr<const Group> group, WorkKind kind, std::uint64_t sequence,
           Milliseconds timeout, const std::vector<at::Tensor>& inputs,
           std::vector<at::Tensor> outputs);
  ~KoloWork() override;

  // Keeps memory of the operations.
  void keep(at::Tensor tensor) { kept_.push_back(std::move(tensor)); }
  // Takes an operation in flight.
  void add(kolo_work* operation);
  // All operations are issued. `after` runs once they have ended with success: it stores results.
  void start(std::function<void()> after);
  // The blocking operations have ended with success.
  void finish_at_once(const std::function<void()>& after);
  void fail(std::exception_ptr exception);

  bool wait(Milliseconds timeout = kNoTimeout) override;
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return sequence_; }
  Milliseconds getTimeout() const { return timeout_; }  // overrides; torch 2.11 lacks it

 protected:
  // Makes progress until the work has ended or the deadline has passed.
  virtual void help(std::optional<std::chrono::steady_clock::time_point> deadline);
  // Called when a wait has passed its timeout.
  virtual void cancel() {}
  // For messages: what the wait was for.
  virtual std::string describe() const { return "no end"; }
  // Ends the work: with `exception`, or with success.
  void end(std::exception_ptr exception);
  bool is_ended();
  void note_issue();

  const std::shared_ptr<const Group> group_;
  const char* const title_;
  const Milliseconds timeout_;
  // Of messages: wait() without a timeout waits for `timeout_`, and shutdown() does not wait.
  bool has_own_timeout_ = false;

 private:
  static void on_end(void* context, const kolo_failure* failure);
  void end_one(std::exception_ptr exception);
  void complete_future();

  const std::uint64_t sequence_;
  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> kept_;
  std::vector<kolo_work*> operations_;  // constant after start()
  std::atomic<int> open_{1};            // operations in flight, and 1 until start()
  std::exception_ptr first_;            // guarded by mutex_
  std::function<void()> after_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by mutex_
  bool is_future_complete_ = false;                 // guarded by mutex_
  std::optional<at::ThreadLocalState> thread_state_;
  std::chrono::steady_clock::time_point issued_at_;
};

// A send. Its handle ends when the tensor may be written again.
class MessageWork : public KoloWork {
 public:
  MessageWork(std::shared_ptr<const Group> group, WorkKind kind, std::uint64_t sequence,
              Milliseconds timeout, const std::vector<at::Tensor>& inputs,
              std::vector<at::Tensor> outputs)
      : KoloWork(std::move(group), kind, sequence, timeout, inputs, std::move(outputs)) {
    has_own_timeout_ = true;
  }
};

}  // namespace kolo_torch
