// The communicator: what a program holds to talk to its peers.
//
// Every rank of a communicator calls the same operations in the same order. An operation is checked
// against its peers' as it starts: a different collective, type, operation, count or root is an
// error on all ranks, not a hang. A failure anywhere *poisons* the communicator: every rank gets
// the same first cause, within its timeout, and every later call throws it again.
//
// Threading: all calls are safe from several threads, but the order in which operations are issued
// must be the same on every rank, so threads that issue must agree on an order. No thread is
// started unless Options::progress_thread asks; progress is made inside calls, wait() and test().
//
// Errors: std::invalid_argument for what this rank alone got wrong, before anything is sent;
// kolo::Error for the rest.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/element.h"
#include "collectives/schedule.h"
#include "collectives/work.h"
#include "transports/error.h"
#include "transports/rendezvous.h"

namespace kolo {

struct CommunicatorOptions {
  std::string transport = "auto";             // a name of transport_names(), or "auto"
  std::string name = "world";                 // keeps communicators of one job apart in the store
  std::chrono::milliseconds timeout{30'000};  // of every operation, and of finding the others
  std::size_t segment_bytes = 0;              // 0: the transport's preference
  bool progress_thread = false;  // a thread that drives asynchronous operations while nobody waits
};

// Where the servers of push_pull are. Ranks that are not servers are workers; with `everywhere`,
// each is both.
struct ServerPlan {
  bool everywhere = false;
  std::vector<int>
      servers;  // ranks that serve and do not work; server i holds chunk i of every push
};

// Called by a server for every complete piece of its chunk, as soon as it is complete: `first` is
// the index of the first element in the whole operation, `sums` the reduction, to be replaced by
// what the workers shall pull. Empty: the reduction itself is what they pull. Called inside
// progress, on the thread that makes it.
using ServerUpdate = std::function<void(std::size_t first, std::span<std::byte> sums)>;

// Bytes as the channels counted them: what the formulas of the algorithms speak of, headers apart.
struct CommunicatorStatistics {
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t header_bytes_sent = 0;
  std::uint64_t operations = 0;
};

// Per call; the defaults are right.
struct CallOptions {
  std::string_view
      algorithm;  // empty: the communicator chooses; else a name of algorithm_names(collective)
  std::size_t segment_bytes = 0;
};

// Algorithms of a collective, best first.
std::vector<std::string_view> algorithm_names(Collective collective);

class Communicator {
 public:
  // Collective over all `size` ranks that share the store; std::invalid_argument for a rank out of
  // range.
  Communicator(int rank, int size, std::shared_ptr<Store> store, CommunicatorOptions options = {});

  // Rank, size and store as the launcher's environment says (rendezvous.h).
  static Communicator from_environment(CommunicatorOptions options = {});

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  std::string_view transport() const;
  // What a call runs whose CallOptions name no algorithm.
  std::string_view algorithm(Collective collective) const;

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

  void broadcast(void* data, std::size_t count, ElementType type, int root,
                 const CallOptions& call = {});
  Work broadcast_async(void* data, std::size_t count, ElementType type, int root,
                       const CallOptions& call = {});

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

  // In place, over a span of floats, doubles, ...
  template <typename T>
  void all_reduce(std::span<T> data, ReduceOp op = ReduceOp::kSum) {
    all_reduce(data.data(), data.data(), data.size(), kElementTypeOf<T>, op);
  }
  template <typename T>
  void broadcast(std::span<T> data, int root = 0) {
    broadcast(data.data(), data.size(), kElementTypeOf<T>, root);
  }

  // Moves operations in flight along, without blocking. True if any is in flight afterwards.
  bool progress();

  // Poisons the communicator on all ranks with `reason` as the first cause. From any thread.
  void abort(std::string_view reason);

  CommunicatorStatistics statistics() const;

 private:
  friend class Operation;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kolo
