// Communicator: the collectives and messages of one rank with its peers.
//
// Every rank of a communicator issues the same operations in the same order. When an operation
// starts, each receiver compares its peer's call with its own. A different collective, type,
// operation, count or root is an error on all ranks, not a hang. (A rank that only sends, such as
// one with a wrong root, may learn of the mismatch from its next operation only.)
//
// A failure anywhere *poisons* the job: every rank gets the same first cause within its timeout.
// Once a rank knows of a failure, each later call on that rank throws it. This holds for all
// communicators that were made from one another.
//
// Threading: all calls are safe from several threads. Every rank must issue operations in the same
// order, so threads that issue operations must agree on an order. No thread is started unless
// CommunicatorOptions::progress_thread asks for it. Progress is made inside calls, wait() and
// test(). Do not cancel a thread inside a call (pthread_cancel); abort() ends the call.
//
// fork(): a communicator belongs to the process that made it. In a child process, each call throws
// std::invalid_argument, and the destructor leaves everything as it is. A child must not use a Work
// in flight, and should call exec or _exit.
//
// Buffers (buffer.h): a rank's chunk is given by chunk_begin() and chunk_count() (schedule.h): of
// 10 elements, three ranks hold 4, 3 and 3. Lengths and types that two buffers or a list of counts
// state twice are checked before anything is sent. Buffers of reductions are aligned to their
// elements; all others may have any address. Until an operation is done, do not write its input and
// do not use its output. A failed operation may have written part of its output.
//
// The destructor ends operations in flight and moves no more data, since an exception may have
// destroyed the buffers already. A progress thread moves data until the destructor runs. With a
// progress thread, create the buffers before the communicator, so that they are destroyed after it.
//
// Errors: std::invalid_argument for a mistake of this rank alone, before anything is sent;
// kolo::Error for all other failures.
//
// Device memory: if its rank has a device (CommunicatorOptions::device), a communicator also takes
// calls on a stream of that device (CallOptions::stream). Their buffers are device memory, and the
// operations are *enqueued*: they run after the earlier work of the stream, and the later work of
// the stream finds their results. The blocking form returns once the whole operation is enqueued;
// the host does not wait for the device. The Work of the ..._async form is done when the device has
// done the operation. Calls without a stream take host memory. Calls with and without a stream
// share one order of issue.
//
// A host can run ahead of its device as far as the driver's queues allow. It can run ahead of the
// hosts of other ranks by the credit of a channel: 4 to 16 operations. For a segment longer than a
// slot (1 MiB over CUDA-IPC) it also waits for the peer's host, but not for the peer's device. A
// mismatch between calls is reported once the call headers have arrived: by a wait for the
// operation, or at the latest by the next call.
//
// A thread that waits only for the stream (cudaStreamSynchronize) makes no progress meanwhile. The
// operations complete without it. But only calls, Work or a progress thread can detect a lost rank
// and release the stream from its waits. Where the host carries the data (a transport without
// streams of its own), streams move only while there is progress. There a progress thread is always
// started.
//
// Run one process for each rank with a device. Ranks that are threads of one process share the
// device's context; that is for tests only. There a CUDA call that waits for all streams (a free, a
// first launch of a kernel) also waits for the other ranks' streams, and those may need this rank's
// next call: a deadlock. Such a program calls barrier() before it frees device memory. It also sets
// CUDA_DEVICE_MAX_CONNECTIONS=32 before CUDA starts. By default all streams of a context share 8
// hardware queues, and a stream behind a waiting one in its queue waits, too.
//
// CUDA graphs: over cuda_ipc, a collective on a stream under capture becomes part of the graph. The
// call returns when this rank has captured it; its Work is done when all ranks have. The graph can
// then be launched any number of times. The caller must order the launches: one after another on a
// rank, in the same order on all ranks. kolo does not check that order. Other calls may come
// between launches. Launches are in no statistics and have no timeout. If a launch waits for a lost
// rank, progress(), calls or a progress thread detect it. Do not launch after the communicator is
// destroyed. Messages cannot be captured, nor any call where hosts carry the data; the error says
// so.
//
// User functions and server updates run on the host and are refused on streams.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../transports/error.h"
#include "../transports/rendezvous.h"
#include "buffer.h"
#include "costs.h"
#include "element.h"
#include "options.h"
#include "profile.h"
#include "schedule.h"
#include "work.h"

namespace kolo::inline v0 {

// Predicted time of one algorithm, for a call that names none: see Communicator::predict.
struct Prediction {
  std::string_view algorithm;
  double time_us = 0;        // from the simulator, with this job's costs; 0: the only candidate
  bool is_chosen = false;    // the cheapest, or the choice of a measured table
  bool is_by_table = false;  // the choice of a measured table
};

// Names of the algorithms of a collective.
std::vector<std::string_view> algorithm_names(Collective collective);

class Communicator {
 public:
  // Collective over all `size` ranks that share the store. std::invalid_argument: the rank is out
  // of range. An exception on one rank ends this call on all ranks, and the job.
  Communicator(int rank, int size, std::shared_ptr<Store> store, CommunicatorOptions options = {});

  // Takes rank, size and store from the launcher's environment (rendezvous.h).
  static Communicator from_environment(CommunicatorOptions options = {});

  // A communicator that was moved from may be assigned to or destroyed; any other call throws
  // std::invalid_argument.
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  // CommunicatorOptions::name; a group has a generated name, the same on all its members.
  std::string_view name() const;
  // CommunicatorOptions::timeout, or the setting that takes its place.
  std::chrono::milliseconds timeout() const;
  // Converts a rank of this communicator to a rank of the job. They differ only in groups (split,
  // subset), which number their ranks anew. std::invalid_argument: there is no such rank.
  int job_rank(int rank) const;
  std::string_view transport() const;
  // The carrier below the transport, where there are several: libfabric's provider, or the
  // transports that UCX has selected. Empty for all other transports.
  std::string carrier() const;
  // The host number of each rank; hosts are numbered in the order of their first ranks.
  std::span<const int> hosts() const;
  // The algorithm of a call whose CallOptions name none; `bytes` is the size of all its data. Type
  // and operation matter only for reductions in mode kInvariant.
  std::string_view algorithm(Collective collective, std::size_t bytes,
                             ElementType type = ElementType::kFloat32,
                             ReduceOp op = ReduceOp::kSum) const;
  // The candidates for such a call, each with its predicted time. Both refuse what the call
  // refuses.
  std::vector<Prediction> predict(Collective collective, std::size_t bytes,
                                  ElementType type = ElementType::kFloat32,
                                  ReduceOp op = ReduceOp::kSum) const;
  // The costs that the planner uses: measured when the job began, or the transport's own constants
  // (see Reproducibility).
  Costs costs() const;

  // out = in[0] op in[1] op ... over all ranks, with the same bits on every rank. `in` and `out`
  // are equally long. They may be the same memory (in place) but must not overlap otherwise. This
  // overlap rule holds for all operations below. The form with one buffer works in place.
  void all_reduce(const Buffer& data, const Reduction& op = ReduceOp::kSum,
                  const CallOptions& call = {});
  void all_reduce(const ConstBuffer& in, const Buffer& out, const Reduction& op = ReduceOp::kSum,
                  const CallOptions& call = {});
  Work all_reduce_async(const Buffer& data, const Reduction& op = ReduceOp::kSum,
                        const CallOptions& call = {});
  Work all_reduce_async(const ConstBuffer& in, const Buffer& out,
                        const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});

  // `chunk` gets this rank's chunk of the reduction of `all`: chunk_count(all, size, rank)
  // elements. In place if chunk is all + chunk_begin(all, size, rank) elements.
  void reduce_scatter(const ConstBuffer& all, const Buffer& chunk,
                      const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});
  Work reduce_scatter_async(const ConstBuffer& all, const Buffer& chunk,
                            const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});

  // `all` gets the chunks of all ranks. In place if chunk is all + chunk_begin(...) elements.
  void all_gather(const ConstBuffer& chunk, const Buffer& all, const CallOptions& call = {});
  Work all_gather_async(const ConstBuffer& chunk, const Buffer& all, const CallOptions& call = {});

  // Copies the root's `data` to the `data` of all other ranks.
  void broadcast(const Buffer& data, int root = 0, const CallOptions& call = {});
  Work broadcast_async(const Buffer& data, int root = 0, const CallOptions& call = {});

  // `out` at the root gets the reduction; other ranks' `out` is ignored, and their data does not
  // change. In place at the root if both are the same memory, as in the form with one buffer.
  void reduce(const Buffer& data, int root = 0, const Reduction& op = ReduceOp::kSum,
              const CallOptions& call = {});
  void reduce(const ConstBuffer& in, const Buffer& out, int root = 0,
              const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});
  Work reduce_async(const Buffer& data, int root = 0, const Reduction& op = ReduceOp::kSum,
                    const CallOptions& call = {});
  Work reduce_async(const ConstBuffer& in, const Buffer& out, int root = 0,
                    const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});

  // `all` at the root gets all chunks. The memory of other ranks' `all` is ignored, so it may be
  // null; they state its count. Its count may be 0 there if all chunks are equally long. In place
  // at the root if chunk is all + chunk_begin(...) elements.
  void gather(const ConstBuffer& chunk, const Buffer& all, int root = 0,
              const CallOptions& call = {});
  Work gather_async(const ConstBuffer& chunk, const Buffer& all, int root = 0,
                    const CallOptions& call = {});

  // The reverse of gather, with the same rules: each rank's `chunk` gets its chunk of the root's
  // `all`.
  void scatter(const ConstBuffer& all, const Buffer& chunk, int root = 0,
               const CallOptions& call = {});
  Work scatter_async(const ConstBuffer& all, const Buffer& chunk, int root = 0,
                     const CallOptions& call = {});

  // `in` holds an equal share for each rank; `out` gets one from each rank. Both are equally long,
  // and their count is a multiple of the size.
  void all_to_all(const ConstBuffer& in, const Buffer& out, const CallOptions& call = {});
  Work all_to_all_async(const ConstBuffer& in, const Buffer& out, const CallOptions& call = {});

  // out = in[0] op ... op in[rank], the reduction over the ranks up to this one; averages are
  // refused. In place if both are the same memory.
  void scan(const Buffer& data, const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});
  void scan(const ConstBuffer& in, const Buffer& out, const Reduction& op = ReduceOp::kSum,
            const CallOptions& call = {});
  Work scan_async(const Buffer& data, const Reduction& op = ReduceOp::kSum,
                  const CallOptions& call = {});
  Work scan_async(const ConstBuffer& in, const Buffer& out, const Reduction& op = ReduceOp::kSum,
                  const CallOptions& call = {});

  // As scan, without this rank's own elements. Rank 0's `out` is not written.
  void exclusive_scan(const Buffer& data, const Reduction& op = ReduceOp::kSum,
                      const CallOptions& call = {});
  void exclusive_scan(const ConstBuffer& in, const Buffer& out,
                      const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});
  Work exclusive_scan_async(const Buffer& data, const Reduction& op = ReduceOp::kSum,
                            const CallOptions& call = {});
  Work exclusive_scan_async(const ConstBuffer& in, const Buffer& out,
                            const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});

  // Returns (its Work is done) once every rank has called it.
  void barrier(const CallOptions& call = {});
  Work barrier_async(const CallOptions& call = {});

  // Push and pull of a parameter server in one round trip. Workers give `in` and get `out`, equally
  // long. Dedicated servers pass the same count, with null memory: {nullptr, count, type}. The
  // reduction is over the workers. `update` is used on servers only.
  void push_pull(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                 const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});
  Work push_pull_async(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                       const ServerPlan& plan, ServerUpdate update = {},
                       const CallOptions& call = {});

  // The two halves of push_pull. push: workers give `in` and wait for no answer. A server's `out`
  // gets its share of the reduction after `update`: share_of(plan, rank, size, count). pull: a
  // server gives its share as `in`, and workers get `out`. The side of all workers (push's `in`,
  // pull's `out`) has the same count on every rank; dedicated servers pass null memory there. The
  // other side is empty on ranks that are not servers: {}. With a server in every rank, both work
  // in place as reduce_scatter and all_gather do. A worker's push is done once its memory may be
  // written again; it does not wait for the servers.
  void push(const ConstBuffer& in, const Buffer& out, const Reduction& op, const ServerPlan& plan,
            ServerUpdate update = {}, const CallOptions& call = {});
  Work push_async(const ConstBuffer& in, const Buffer& out, const Reduction& op,
                  const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});
  void pull(const ConstBuffer& in, const Buffer& out, const ServerPlan& plan,
            const CallOptions& call = {});
  Work pull_async(const ConstBuffer& in, const Buffer& out, const ServerPlan& plan,
                  const CallOptions& call = {});

  // --- shares of any length: one count per rank, shares packed one after another in `all` ---

  // As reduce_scatter and all_gather, where share r has counts[r] elements. All ranks pass the same
  // counts.
  void reduce_scatter_v(const ConstBuffer& all, const Buffer& share, Counts counts,
                        const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});
  Work reduce_scatter_v_async(const ConstBuffer& all, const Buffer& share, Counts counts,
                              const Reduction& op = ReduceOp::kSum, const CallOptions& call = {});
  void all_gather_v(const ConstBuffer& share, const Buffer& all, Counts counts,
                    const CallOptions& call = {});
  Work all_gather_v_async(const ConstBuffer& share, const Buffer& all, Counts counts,
                          const CallOptions& call = {});

  // As gather and scatter. Only the root passes `all` and `counts`; other ranks know their own
  // share only, and what they pass there is ignored. Error kMismatch if a share differs from its
  // count.
  void gather_v(const ConstBuffer& share, const Buffer& all, Counts counts, int root = 0,
                const CallOptions& call = {});
  Work gather_v_async(const ConstBuffer& share, const Buffer& all, Counts counts, int root = 0,
                      const CallOptions& call = {});
  void scatter_v(const ConstBuffer& all, const Buffer& share, Counts counts, int root = 0,
                 const CallOptions& call = {});
  Work scatter_v_async(const ConstBuffer& all, const Buffer& share, Counts counts, int root = 0,
                       const CallOptions& call = {});

  // `in` holds gives[p] elements for rank p, and `out` receives gets[p] elements from rank p, both
  // in the order of ranks. gets[p] must equal the number that rank p gives to this rank. `in` and
  // `out` must not be the same memory, since the two lengths may differ.
  void all_to_all_v(const ConstBuffer& in, Counts gives, const Buffer& out, Counts gets,
                    const CallOptions& call = {});
  Work all_to_all_v_async(const ConstBuffer& in, Counts gives, const Buffer& out, Counts gets,
                          const CallOptions& call = {});

  // --- messages between two ranks: sends and receives match in order; other ranks take no part ---

  // Messages issued one after another run at the same time. Order is kept only among messages to
  // the same rank, and among messages from the same rank. So receive_async followed by send on
  // every rank is an exchange, receives may be posted in any order, and both directions of a pair
  // transfer at once. A collective between two messages separates them: it waits for all earlier
  // operations, and all later operations wait for it. A message in flight moves while this rank is
  // inside a call of this communicator, or has a progress thread.
  //
  // A blocking send returns once `data` may be written again, which may be before or after the
  // receive begins. So if all ranks send first, they hang when a message exceeds the channel's
  // credit. send_receive does both at once, as MPI_Sendrecv, and cannot hang.
  void send(const ConstBuffer& data, int to, const CallOptions& call = {});
  Work send_async(const ConstBuffer& data, int to, const CallOptions& call = {});
  void receive(const Buffer& data, int from, const CallOptions& call = {});
  Work receive_async(const Buffer& data, int from, const CallOptions& call = {});
  // The two buffers must not overlap. `to` and `from` may be the same rank. If both are this rank,
  // it is a copy. For the equivalent of MPI_Isendrecv, issue both messages by their asynchronous
  // forms.
  //
  // On streams, messages are done in the order of issue, as all work of a stream. There, and
  // between streams of one communicator, a receive delays the sends issued after it. So ranks that
  // exchange must send first or use send_receive. On streams send_receive is refused for more data
  // than the channel's slots hold (over CUDA-IPC at least 4 MiB).
  void send_receive(const ConstBuffer& sent, int to, const Buffer& received, int from,
                    const CallOptions& call = {});

  // --- groups: communicators of some of these ranks, with channels of their own ---
  //
  // A group may outlive this communicator. A failure in one of them is a failure of the job. Once a
  // rank knows of it, all calls on all of them fail there, and operations in flight end with it at
  // their next call or wait. (Communicators that were constructed separately over one store each
  // learn of the failure when they next wait for a peer.)

  // Makes one group of all ranks with the same `color`, ordered by `key`, then by rank. Collective
  // over all ranks. A rank with a color below 0 joins no group.
  std::optional<Communicator> split(int color, int key = 0);
  // A communicator of the same ranks; operations of the two do not wait for each other. Collective.
  Communicator duplicate();
  // A communicator of the listed `ranks`, numbered in that order. Collective over these ranks only.
  // std::invalid_argument: this rank is not in the list, or a rank is listed twice.
  Communicator subset(std::span<const int> ranks);

  // --- memory that peers can reach ---

  // Allocates zeroed, page-aligned memory for buffers, with all pages present. If the transport can
  // map it into peers (shm), a peer reads sent data in place, and an in-place sum of two ranks is
  // written by both into both buffers, without copies. With other transports it is plain memory.
  // The results have the same bits with any memory. This call is local; peers learn of the memory
  // at its first use. It may outlive the communicator and costs a file descriptor. Free it after
  // the operations on it are done. After a failure, memory that was mapped by peers belongs to this
  // process alone again. Error kSystem, or kOutOfMemory: there is no memory.
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes);

  // Advances operations in flight without blocking. Returns true if any is still in flight.
  bool progress();
  // Descriptor for the program's event loop. It becomes readable (POLLIN) when progress() has work
  // to do: data or credit has arrived, a deadline has passed, an operation was issued, or the job
  // has failed. Do not read from it or close it. The loop:
  //
  //   int descriptor = world.descriptor();
  //   Work work = world.all_reduce_async(...);
  //   while (true) { poll descriptor and others; if readable: world.progress(); }
  //
  // The first call creates the descriptor; before that it costs nothing. progress() throws the
  // job's failure even if nothing is in flight. Each communicator and each group has one
  // descriptor. It stays the same while the communicator lives. std::invalid_argument: there is a
  // progress thread. Error kSystem: out of descriptors.
  int descriptor();

  // Poisons the job on all ranks, with `reason` as the first cause unless there is one already.
  // Ends the operations in flight here; other ranks learn of it as of any failure. From any thread.
  void abort(std::string_view reason);
  // The same for a failure that the caller has detected: its code, and the rank that caused it, by
  // its number in this communicator (or kNoPeer). "rank R (HOST): " is put before the reason.
  void abort(ErrorCode code, int peer, std::string_view reason);
  // Refuses all later operations here, and aborts as above if any is in flight. For an owner that
  // waits for calls of other threads before it destroys the communicator.
  void stop(std::string_view reason);
  // The job's failure, if this rank knows of one. Asks the store and waits for no peer. For
  // monitoring, as NCCL's ncclCommGetAsyncError. From any thread.
  std::optional<Error> failure() const;

  CommunicatorStatistics statistics() const;
  // All zero for this rank itself; std::invalid_argument: there is no such rank.
  PeerStatistics peer_statistics(int peer) const;
  // The cost of the steps so far, one row per kind of step that has occurred. Empty unless
  // CommunicatorOptions::profile (or a timeline) is set.
  std::vector<StepProfile> step_profile() const;
  // Writes the timeline and the trace (KOLO_TRACE) now. Without this call the communicator's end
  // writes them, and can report a failure on standard error only. Later steps are in no file. Error
  // kSystem: the file could not be written, and why; no partial file is left.
  void write_records();

 private:
  friend class Operation;
  struct State;
  explicit Communicator(std::shared_ptr<State> state);
  const std::shared_ptr<State>& held() const;
  void end() noexcept;
  State& state() const;
  std::shared_ptr<State> state_;
};

}  // namespace kolo::inline v0
