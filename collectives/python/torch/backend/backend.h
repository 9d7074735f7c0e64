// Backend "kolo" of torch.distributed, for tensors of the CPU. It uses kolo's C interface alone.
//
// Order. Every rank issues the collectives of a group in the same order. Messages (send, recv) are
// independent of them (mailbox.h).
//
// Threads. A call with async_op=False runs on the caller's thread, and starts nothing. Each group
// has two progress threads of kolo, which sleep unless operations are in flight; futures are
// completed by threads that are started when needed (work.h).
//
// Strided tensors are copied to contiguous memory and back. A failure ends the group on all ranks:
// later calls throw its first cause.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "collectives/python/torch/backend/elements.h"
#include "collectives/python/torch/backend/mailbox.h"
#include "collectives/python/torch/backend/work.h"

namespace kolo_torch {

using Tensors = std::vector<at::Tensor>;
using WorkHandle = c10::intrusive_ptr<c10d::Work>;
using StoreHandle = c10::intrusive_ptr<c10d::Store>;

// Issues the operations of one call: at once and to their end, or as operations of a work.
class Issuer {
 public:
  Issuer(const GroupName& group, const char* title, kolo_communicator* communicator,
         std::int64_t timeout_ms, KoloWork* work);

  kolo_communicator* communicator() const { return communicator_; }
  void set_scale(double scale);
  // `issue` is called with the options of the call and the place of the handle, both may be null.
  template <typename Issue>
  void operator()(Issue&& issue) {
    kolo_work* made = nullptr;
    const kolo_result result = issue(options_, work_ == nullptr ? nullptr : &made);
    require(group_, title_, result, communicator_);
    if (made != nullptr) work_->add(made);
  }

 private:
  const GroupName& group_;
  const char* const title_;
  kolo_communicator* const communicator_;
  KoloWork* const work_;
  kolo_call call_{};
  const kolo_call* options_ = nullptr;  // null: the usual ones, for which kolo is fastest
};

class KoloBackend : public c10d::Backend {
 public:
  // Collective over all ranks that share the store.
  KoloBackend(const StoreHandle& store, int rank, int size, Milliseconds timeout,
              const std::string& name);
  ~KoloBackend() override;

  const std::string getBackendName() const override { return "kolo"; }
  bool supportsSplitting() const override { return true; }
  // They override functions of torch, but torch 2.6 lacks these.
  c10::intrusive_ptr<Options> getBackendOptions();
  void setTimeout(Milliseconds timeout) { timeout_ms_ = timeout.count(); }
#ifdef KOLO_TORCH_HAS_ERROR_TYPE
  c10d::ErrorType getError();
#endif
  void abort();
  void shutdown();
  c10::intrusive_ptr<c10d::Backend> split(const StoreHandle& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& opts);
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

  WorkHandle allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkHandle allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkHandle allreduce_coalesced(Tensors& tensors,
                                 const c10d::AllreduceCoalescedOptions& opts) override;
  WorkHandle reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkHandle broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;

  WorkHandle reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                            const c10d::ReduceScatterOptions& opts) override;
  WorkHandle _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::ReduceScatterOptions& opts) override;
  WorkHandle reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::ReduceScatterOptions& opts) override;

  WorkHandle allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                       const c10d::AllgatherOptions& opts) override;
  WorkHandle _allgather_base(at::Tensor& output, at::Tensor& input,
                             const c10d::AllgatherOptions& opts) override;
  WorkHandle allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                 const c10d::AllgatherOptions& opts) override;
  WorkHandle allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions& opts) override;

  WorkHandle gather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::GatherOptions& opts) override;
  WorkHandle scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                     const c10d::ScatterOptions& opts) override;
  WorkHandle alltoall(Tensors& outputs, Tensors& inputs,
                      const c10d::AllToAllOptions& opts) override;
  WorkHandle alltoall_base(at::Tensor& output, at::Tensor& input,
                           std::vector<std::int64_t>& output_splits,
                           std::vector<std::int64_t>& input_splits,
                           const c10d::AllToAllOptions& opts) override;
  WorkHandle barrier(const c10d::BarrierOptions& opts) override;

  // The tag of a message is not negative.
  WorkHandle send(Tensors& tensors, int to, int tag) override;
  WorkHandle recv(Tensors& tensors, int from, int tag) override;
  WorkHandle recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

 private:
  // One call: how it is named, and how long it may take.
  struct Call {
    WorkKind kind;
    Milliseconds timeout;
    bool is_async;
  };
  using Body = c10::function_ref<void(Issuer&)>;

  template <typename Given>
  Call call(c10d::OpType type, const char* title, const Given& opts) const;
  WorkHandle run(const Call& call, const Tensors& inputs, const Tensors& outputs, Tensors kept,
                 Body body, std::function<void()> after = {});
  std::shared_ptr<kolo_communicator> communicator() const;
  std::shared_ptr<Mailbox> mailbox() const;
  std::shared_ptr<kolo_communicator> connect(const StoreHandle& store) const;
  c10::intrusive_ptr<ReceiveWork> receive(Tensors& tensors, int from, std::uint64_t tag,
                                          const char* title, Milliseconds timeout);
  c10::intrusive_ptr<KoloWork> send_to(Tensors& tensors, int to, std::uint64_t tag,
                                       Milliseconds timeout);
  void require_root(const char* operation, std::int64_t root) const;
  void collect_barrier(std::uint64_t tag, Milliseconds timeout, bool wait_all_ranks);
  void follow_barrier(std::uint64_t tag, Milliseconds timeout);

  const int process_;  // a process that is forked from it leaves everything as it is
  const std::shared_ptr<Group> group_ = std::make_shared<Group>();
  std::atomic<std::int64_t> timeout_ms_;
  std::int64_t usual_timeout_ms_;  // kolo's own default for the group
  std::atomic<std::uint64_t> sequence_{0};
  std::uint64_t barriers_ = 0;
  c10::intrusive_ptr<Options> options_;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<kolo_communicator> communicator_;
  std::shared_ptr<Mailbox> mailbox_;
  bool is_aborted_ = false;
};

}  // namespace kolo_torch
