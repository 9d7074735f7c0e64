// The communicator: what a program holds to talk to its peers.
//
// Every rank of a communicator calls the same operations in the same order. An operation is checked
// against its peers' as it starts: a different collective, type, operation, count or root is an
// error on all ranks, not a hang. (Who differs in that it only sends, as one that takes itself for
// the root, may learn it from the next operation only.) A failure anywhere *poisons* the job: every
// rank gets the same first cause, within its timeout. From the moment that a rank knows of it,
// every later call there throws it, of this communicator and of all that are made from one another.
//
// Threading: all calls are safe from several threads, but the order in which operations are issued
// must be the same on every rank, so threads that issue must agree on an order. No thread is
// started unless CommunicatorOptions::progress_thread asks; progress is made inside calls, wait()
// and test(). A thread inside a call is not to be cancelled (pthread_cancel): abort() ends it.
//
// fork(): a communicator is of the process that made it. In a child each call is an
// std::invalid_argument, and the destructor leaves all as it is. (A Work in flight is not to be
// touched there, and a child should exec or _exit.)
//
// Buffers. `count` is of the whole operation, on every rank the same; a rank's share of it is that
// of chunk_begin() and chunk_count() (schedule.h): of 10 elements three ranks have 4, 3 and 3. What
// holds no elements may be null. Buffers of reductions are aligned to their elements; what is only
// moved may lie anywhere. Until an operation is over, what it reads must stay as it is, and what it
// writes is nobody's. What failed may have written part of it. The destructor ends what is in
// flight without moving it on: an exception may have taken the buffers already. A progress thread
// moves it on until then: there, buffers are to be made before the communicator, which so ends
// before them.
//
// Errors: std::invalid_argument for what this rank alone got wrong, before anything is sent;
// kolo::Error for the rest.
//
// Device memory. A communicator whose rank has a device (CommunicatorOptions::device) also takes
// calls on a stream of that device: CallOptions::stream. Their buffers are device memory, and they
// are *enqueued*: what is given to the stream before comes before them, what is given to it later
// finds the results in place. The blocking form returns as soon as all of the operation is given to
// the stream; the host does not wait for the device. The ..._async form's Work is done when the
// device is done with it. Calls without a stream are for host memory, as everywhere; the order of
// issue is one for both.
//
// A host runs ahead of its device as far as the driver's queues let it, and ahead of other ranks'
// hosts by as many operations as a channel has credit for (16 at the most, 4 at the least); it also
// waits for a peer's host, not for its device, where a segment is longer than a slot (1 MiB over
// CUDA-IPC). That ranks call different things is said when the openings have come: by a wait for
// the operation, or the next call, at the latest.
//
// Whoever waits by the stream alone, by cudaStreamSynchronize, makes no progress meanwhile: all is
// done without it, but that a rank was lost is seen, and the stream freed from its waits, by calls,
// by Work, or by a progress thread. Where the host carries the data (a transport without streams of
// its own), streams move only while there is progress, and a progress thread is started unasked.
//
// A collective on a stream that is being captured into a CUDA graph is captured, over cuda_ipc: the
// call returns when this rank has captured it, its Work is done when all ranks have, and the graph
// can then be launched again and again. The launches of a rank follow one another, in the same
// order on all ranks, as nobody sees to that; live calls may stand anywhere between. Launches count
// in no statistics, and no timeout is theirs: progress(), calls, or a progress thread see that a
// rank is lost that a launch waits for. No launch after the communicator's end. Refused by name:
// messages, and captures where hosts carry the data.
//
// Not on streams: user functions and servers' updates, which run on the host.
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
#include "costs.h"
#include "element.h"
#include "options.h"
#include "profile.h"
#include "schedule.h"
#include "span_calls.h"
#include "user_reduce_op.h"
#include "work.h"

namespace kolo {

// What a call that names no algorithm goes by: see Communicator::predict.
struct Prediction {
  std::string_view algorithm;
  double time_us = 0;        // as the simulator has it with this job's costs; 0: it has no rivals
  bool is_chosen = false;    // as the cheapest, or by a measured table
  bool is_by_table = false;  // chosen by a table
};

// Algorithms of a collective.
std::vector<std::string_view> algorithm_names(Collective collective);

class Communicator : public SpanCalls<Communicator> {
 public:
  // Collective over all `size` ranks that share the store; std::invalid_argument for a rank out of
  // range. Whatever it throws, the others' ends with it, and the job.
  Communicator(int rank, int size, std::shared_ptr<Store> store, CommunicatorOptions options = {});

  // Rank, size and store as the launcher's environment says (rendezvous.h).
  static Communicator from_environment(CommunicatorOptions options = {});

  // What was moved from may be assigned to or destroyed; any call throws std::invalid_argument.
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  // CommunicatorOptions::name; of a group, one that its members have in common.
  std::string_view name() const;
  // Which rank of the job `rank` is: the same but in groups (split, subset), whose ranks are
  // numbered anew. std::invalid_argument where there is no such rank.
  int job_rank(int rank) const;
  std::string_view transport() const;
  // What that goes over where there are several such: libfabric's provider, the transports that UCX
  // has taken; empty elsewhere.
  std::string carrier() const;
  // By rank: the number of its host; hosts are numbered in the order of their first ranks.
  std::span<const int> hosts() const;
  // What a call runs whose CallOptions name no algorithm; `bytes`: of all its data. Type and
  // operation matter to reductions that have to be invariant.
  std::string_view algorithm(Collective collective, std::size_t bytes,
                             ElementType type = ElementType::kFloat32,
                             ReduceOp op = ReduceOp::kSum) const;
  // The algorithms that it chooses from, with what each would take.
  std::vector<Prediction> predict(Collective collective, std::size_t bytes,
                                  ElementType type = ElementType::kFloat32,
                                  ReduceOp op = ReduceOp::kSum) const;
  // What it plans with: measured as the job began, or what the transport says of itself
  // (Reproducibility).
  Costs costs() const;

  // out = in[0] op in[1] op ... of all ranks, the same bits on every rank. `in` and `out` hold
  // `count` elements and may be the same memory; they must not overlap otherwise. That holds for
  // all that follow.
  void all_reduce(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                  const CallOptions& call = {});
  Work all_reduce_async(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                        const CallOptions& call = {});

  // `in` holds `count` elements, `out` this rank's chunk of the result: chunk_count(count, size,
  // rank) elements. In place where out is in + chunk_begin(count, size, rank) elements.
  void reduce_scatter(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                      const CallOptions& call = {});
  Work reduce_scatter_async(const void* in, void* out, std::size_t count, ElementType type,
                            ReduceOp op, const CallOptions& call = {});

  // `in` holds this rank's chunk, `out` all `count` elements. In place where in is out +
  // chunk_begin(...) elements.
  void all_gather(const void* in, void* out, std::size_t count, ElementType type,
                  const CallOptions& call = {});
  Work all_gather_async(const void* in, void* out, std::size_t count, ElementType type,
                        const CallOptions& call = {});

  // `data` holds `count` elements at the root, which all others get there.
  void broadcast(void* data, std::size_t count, ElementType type, int root,
                 const CallOptions& call = {});
  Work broadcast_async(void* data, std::size_t count, ElementType type, int root,
                       const CallOptions& call = {});

  // `in` holds `count` elements; `out` at the root gets their reduction, and matters nowhere else.
  // In place at the root where they are the same memory.
  void reduce(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op, int root,
              const CallOptions& call = {});
  Work reduce_async(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                    int root, const CallOptions& call = {});

  // `in` holds this rank's chunk of `count` elements, `out` at the root all of them, and matters
  // nowhere else. In place at the root where in is out + chunk_begin(...) elements.
  void gather(const void* in, void* out, std::size_t count, ElementType type, int root,
              const CallOptions& call = {});
  Work gather_async(const void* in, void* out, std::size_t count, ElementType type, int root,
                    const CallOptions& call = {});

  // `in` at the root holds all `count` elements, and matters nowhere else; `out` gets this rank's
  // chunk. In place at the root where out is in + chunk_begin(...) elements.
  void scatter(const void* in, void* out, std::size_t count, ElementType type, int root,
               const CallOptions& call = {});
  Work scatter_async(const void* in, void* out, std::size_t count, ElementType type, int root,
                     const CallOptions& call = {});

  // `in` holds `count` / size elements for each rank, `out` gets as many from each; `count` is a
  // multiple of the size.
  void all_to_all(const void* in, void* out, std::size_t count, ElementType type,
                  const CallOptions& call = {});
  Work all_to_all_async(const void* in, void* out, std::size_t count, ElementType type,
                        const CallOptions& call = {});

  // out = in[0] op ... op in[rank], of the ranks up to this one; no averages. In place where they
  // are the same memory.
  void scan(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
            const CallOptions& call = {});
  Work scan_async(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                  const CallOptions& call = {});

  // The same without this rank's own: rank 0 gets nothing, and its `out` is left alone.
  void exclusive_scan(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                      const CallOptions& call = {});
  Work exclusive_scan_async(const void* in, void* out, std::size_t count, ElementType type,
                            ReduceOp op, const CallOptions& call = {});

  // Returns, or is done, once every rank has called it.
  void barrier(const CallOptions& call = {});
  Work barrier_async(const CallOptions& call = {});

  // A parameter server's push and pull in one round trip: workers give `count` elements and get
  // `count` back; dedicated servers pass null for both, and the same count. `update` matters on
  // servers only. The reduction is over workers.
  void push_pull(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                 const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});
  Work push_pull_async(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                       const ServerPlan& plan, ServerUpdate update = {},
                       const CallOptions& call = {});

  // Its halves, each by itself. push: workers give `count` elements and wait for no answer; server
  // i gets chunk i of the reduction, chunk_count(count, servers, i) elements, as `update` leaves
  // it. pull: server i gives chunk i, and workers get `count` elements. Null is passed where a rank
  // gives or gets nothing. In place, where every rank serves, as reduce_scatter and all_gather. A
  // push is over for a worker when its memory may be written again, whatever servers do with it.
  void push(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
            const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});
  Work push_async(const void* in, void* out, std::size_t count, ElementType type, ReduceOp op,
                  const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});
  void pull(const void* in, void* out, std::size_t count, ElementType type, const ServerPlan& plan,
            const CallOptions& call = {});
  Work pull_async(const void* in, void* out, std::size_t count, ElementType type,
                  const ServerPlan& plan, const CallOptions& call = {});

  // --- the reductions by a function of the caller's own: see user_reduce_op.h ---

  // As those with a type and an operation, with elements of reducer.element_bytes. The reducer is
  // needed during the call alone: an asynchronous operation keeps a copy until it is done, and a
  // persistent one until its Work is gone; so must then live what the function refers to.
  //
  // A reducer that does not commute runs, where the call names none, by the cheapest algorithm that
  // keeps the order of the ranks; std::invalid_argument lists those that do where it names another.
  // With kInvariant every reducer is held to ((x0 op x1) op x2) ...
  void all_reduce(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                  const CallOptions& call = {});
  Work all_reduce_async(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                        const CallOptions& call = {});
  void reduce_scatter(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                      const CallOptions& call = {});
  Work reduce_scatter_async(const void* in, void* out, std::size_t count,
                            const UserReduceOp& reducer, const CallOptions& call = {});
  void reduce_scatter_v(const void* in, void* out, Counts counts, const UserReduceOp& reducer,
                        const CallOptions& call = {});
  Work reduce_scatter_v_async(const void* in, void* out, Counts counts, const UserReduceOp& reducer,
                              const CallOptions& call = {});
  void reduce(const void* in, void* out, std::size_t count, const UserReduceOp& reducer, int root,
              const CallOptions& call = {});
  Work reduce_async(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                    int root, const CallOptions& call = {});
  void scan(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
            const CallOptions& call = {});
  Work scan_async(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                  const CallOptions& call = {});
  void exclusive_scan(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                      const CallOptions& call = {});
  Work exclusive_scan_async(const void* in, void* out, std::size_t count,
                            const UserReduceOp& reducer, const CallOptions& call = {});
  void push_pull(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                 const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});
  Work push_pull_async(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                       const ServerPlan& plan, ServerUpdate update = {},
                       const CallOptions& call = {});
  void push(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
            const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});
  Work push_async(const void* in, void* out, std::size_t count, const UserReduceOp& reducer,
                  const ServerPlan& plan, ServerUpdate update = {}, const CallOptions& call = {});

  // --- shares of any length: one count per rank, whose data lie in a row ---

  // All ranks give the same counts. As reduce_scatter and all_gather, with chunk r of counts[r]
  // elements.
  void reduce_scatter_v(const void* in, void* out, Counts counts, ElementType type, ReduceOp op,
                        const CallOptions& call = {});
  Work reduce_scatter_v_async(const void* in, void* out, Counts counts, ElementType type,
                              ReduceOp op, const CallOptions& call = {});
  void all_gather_v(const void* in, void* out, Counts counts, ElementType type,
                    const CallOptions& call = {});
  Work all_gather_v_async(const void* in, void* out, Counts counts, ElementType type,
                          const CallOptions& call = {});

  // The root gives all counts, the others only their own `count` (and nothing for `counts`). A
  // count on which the two differ is an error kMismatch.
  void gather_v(const void* in, std::size_t count, void* out, Counts counts, ElementType type,
                int root, const CallOptions& call = {});
  Work gather_v_async(const void* in, std::size_t count, void* out, Counts counts, ElementType type,
                      int root, const CallOptions& call = {});
  void scatter_v(const void* in, Counts counts, void* out, std::size_t count, ElementType type,
                 int root, const CallOptions& call = {});
  Work scatter_v_async(const void* in, Counts counts, void* out, std::size_t count,
                       ElementType type, int root, const CallOptions& call = {});

  // `in` holds gives[p] elements for rank p, `out` gets[p] from rank p, who must say the same. Not
  // in place: what comes need not be as long as what goes.
  void all_to_all_v(const void* in, Counts gives, void* out, Counts gets, ElementType type,
                    const CallOptions& call = {});
  Work all_to_all_v_async(const void* in, Counts gives, void* out, Counts gets, ElementType type,
                          const CallOptions& call = {});

  // --- between two ranks: each send meets the other's receive, in order; nobody else calls ---

  // Messages that follow each other run at the same time, whatever the order of their issue; only
  // those to one rank, or from one, keep theirs. So receive_async and then send on every rank is an
  // exchange, receives may be posted in any order, and both ways of a pair carry at once. A
  // collective between two messages keeps them apart: it waits for all issued before it, and what
  // is issued after it waits for it. A message in flight moves while this rank is inside a call of
  // this communicator, or has a progress thread.
  // A blocking send returns once `data` may be written again, which may be before or after the
  // receive began: ranks that all send first hang where a message exceeds the channel's credit.
  // send_receive does both at once, as MPI_Sendrecv, and cannot.
  void send(const void* data, std::size_t count, ElementType type, int to,
            const CallOptions& call = {});
  Work send_async(const void* data, std::size_t count, ElementType type, int to,
                  const CallOptions& call = {});
  void receive(void* data, std::size_t count, ElementType type, int from,
               const CallOptions& call = {});
  Work receive_async(void* data, std::size_t count, ElementType type, int from,
                     const CallOptions& call = {});
  // Buffers apart; `to` and `from` may be one rank, or both this one: then it is a copy. For what
  // MPI calls Isendrecv issue both messages by their asynchronous forms.
  // On streams, messages are done in the order of issue, as a stream does all its work: there, and
  // between streams of one communicator, a receive holds up the sends that are issued after it.
  // Ranks that exchange send first, or by send_receive, which is refused for more than what a
  // channel's slots hold (4 MiB over CUDA-IPC).
  void send_receive(const void* send_data, std::size_t send_count, int to, void* receive_data,
                    std::size_t receive_count, int from, ElementType type,
                    const CallOptions& call = {});

  // --- the same over spans of floats, doubles, ...: see span_calls.h ---

  using SpanCalls::all_gather;
  using SpanCalls::all_gather_async;
  using SpanCalls::all_gather_v;
  using SpanCalls::all_gather_v_async;
  using SpanCalls::all_reduce;
  using SpanCalls::all_reduce_async;
  using SpanCalls::all_to_all;
  using SpanCalls::all_to_all_async;
  using SpanCalls::all_to_all_v;
  using SpanCalls::all_to_all_v_async;
  using SpanCalls::broadcast;
  using SpanCalls::broadcast_async;
  using SpanCalls::exclusive_scan;
  using SpanCalls::exclusive_scan_async;
  using SpanCalls::gather;
  using SpanCalls::gather_async;
  using SpanCalls::gather_v;
  using SpanCalls::gather_v_async;
  using SpanCalls::receive;
  using SpanCalls::receive_async;
  using SpanCalls::reduce;
  using SpanCalls::reduce_async;
  using SpanCalls::reduce_scatter;
  using SpanCalls::reduce_scatter_async;
  using SpanCalls::reduce_scatter_v;
  using SpanCalls::reduce_scatter_v_async;
  using SpanCalls::scan;
  using SpanCalls::scan_async;
  using SpanCalls::scatter;
  using SpanCalls::scatter_async;
  using SpanCalls::scatter_v;
  using SpanCalls::scatter_v_async;
  using SpanCalls::send;
  using SpanCalls::send_async;
  using SpanCalls::send_receive;

  // --- groups: communicators of some of these ranks, with channels of their own ---
  //
  // A group outlives this communicator if need be. A failure in one is a failure of the job: on a
  // rank that knows of it no call of any passes any more, and what is in flight in the others ends
  // with it, in their next call or wait. (Communicators that are constructed apart, over one store,
  // each hear of it when they next wait for a peer.)

  // Ranks of one `color` become a group, in the order of `key`, then of rank. Collective over all
  // ranks; who gives a color below 0 has no part in any.
  std::optional<Communicator> split(int color, int key = 0);
  // The same ranks again: operations of the two do not wait for each other. Collective.
  Communicator duplicate();
  // `ranks` of this communicator, in the order of the new one; collective over these alone.
  // std::invalid_argument where this rank is not among them, or one is there twice.
  Communicator subset(std::span<const int> ranks);

  // --- memory that peers can reach ---

  // Zeroed memory for buffers, page-aligned, all of it present. Where the transport lets peers
  // reach it (shm), what is sent from there is read where it lies, and a sum of two ranks, in
  // place, is written there by both: nothing is copied in between. Elsewhere it is plain memory.
  // The results are the same bits whatever memory is given. Local to this rank; peers learn of it
  // when it is first used. It may outlive the communicator, and costs a descriptor; free it after
  // the operations on it are done. After a failure what was
  // lent to peers is this process's alone again. Error kSystem where
  // there is no memory.
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes);

  // Moves operations in flight along, without blocking. True if any is in flight afterwards.
  bool progress();

  // Poisons the job on all ranks with `reason` as the first cause, unless there is one already.
  // Ends what is in flight here; the others hear of it as of any failure. From any thread.
  void abort(std::string_view reason);
  // The job's failure; none: this rank has heard of none. Asks the store, and waits for nobody: for
  // who watches, as with NCCL's ncclCommGetAsyncError. From any thread.
  std::optional<Error> failure() const;

  CommunicatorStatistics statistics() const;
  // All zero for this rank itself; std::invalid_argument where there is no such rank.
  PeerStatistics peer_statistics(int peer) const;
  // What steps took so far, a row for each kind that has occurred; empty where nobody asked for it
  // (CommunicatorOptions::profile).
  std::vector<StepProfile> step_profile() const;
  // Writes now what the communicator's end would write, the timeline and the trace (KOLO_TRACE):
  // the end can only say on standard error that a file could not be written. What comes later is in
  // no file. Error kSystem names the file and says why not; nothing of it is left.
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

}  // namespace kolo
