// Validated arguments of a communicator's call, before it is issued.
//
// Each function takes the caller's arguments and returns the Call. Invalid arguments throw
// std::invalid_argument, which names the collective, the argument and the problem. Nothing is sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/buffer.h"
#include "collectives/options.h"
#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Instead of an algorithm's row: the planner chooses when the call is issued.
inline constexpr std::uint8_t kPlannerChooses = 0xff;

// Sizes and overlap rules of a call's two buffers, in bytes.
struct Extents {
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;
  // In place, byte in_begin of `in` is byte out_begin of `out`.
  std::size_t in_begin = 0;
  std::size_t out_begin = 0;
  std::size_t alignment = 1;  // of both, a power of 2; an element's if elements are combined

  bool are_aligned(const void* in, const void* out) const {
    const auto ins = in_bytes == 0 ? 0 : reinterpret_cast<std::uintptr_t>(in);
    const auto outs = out_bytes == 0 ? 0 : reinterpret_cast<std::uintptr_t>(out);
    return ((ins | outs) & (alignment - 1)) == 0;
  }

  // True if the buffers are in place or do not overlap.
  bool keep_apart(const void* in, const void* out) const {
    const auto ins = reinterpret_cast<std::uintptr_t>(in);
    const auto outs = reinterpret_cast<std::uintptr_t>(out);
    if (ins == 0 || outs == 0 || in_bytes == 0 || out_bytes == 0) return true;
    return ins + in_begin == outs + out_begin || ins + in_bytes <= outs || outs + out_bytes <= ins;
  }

  // True if these buffers can be used, given that they are long enough.
  bool fit(const void* in, const void* out) const {
    if ((in == nullptr && in_bytes > 0) || (out == nullptr && out_bytes > 0)) return false;
    return are_aligned(in, out) && keep_apart(in, out);
  }
};

struct Call {
  Collective collective = Collective::kBarrier;
  std::uint8_t algorithm = kPlannerChooses;  // a row of algorithms()
  ElementType type = ElementType::kInt32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  int peer = 0;           // of a message: the receiver; the sender is `root`
  std::size_t count = 0;  // the same on all ranks
  const void* in = nullptr;
  void* out = nullptr;
  Extents extents;
  const ServerPlan* servers = nullptr;
  std::vector<std::size_t> lengths;  // of chunks; empty: `count`, split evenly
  bool has_own_lengths = false;      // each rank knows its own lengths only; no common count
  std::size_t segment_bytes = 0;     // 0: the communicator's default
  bool is_persistent = false;
  const UserReduceOp* reducer = nullptr;  // user function; borrowed
  std::size_t element_bytes = 4;
  double scale = 1;                      // of kScaledSum
  std::chrono::milliseconds timeout{0};  // 0: the communicator's
  std::optional<DeviceStream> stream;    // none: it runs on the host
  bool is_captured = false;              // the stream is being captured into a graph
};

namespace checked_calls {

// The calling rank.
struct Caller {
  int rank;
  int size;
};

Call all_reduce(Caller who, ConstBuffer in, Buffer out, Reduction op, const CallOptions& options);
Call reduce_scatter(Caller who, ConstBuffer all, Buffer chunk, Reduction op,
                    const CallOptions& options);
Call all_gather(Caller who, ConstBuffer chunk, Buffer all, const CallOptions& options);
Call broadcast(Caller who, Buffer data, int root, const CallOptions& options);
Call barrier(const CallOptions& options);
Call push_pull(Caller who, ConstBuffer in, Buffer out, Reduction op, const ServerPlan& plan,
               const CallOptions& options);
Call push(Caller who, ConstBuffer in, Buffer out, Reduction op, const ServerPlan& plan,
          const CallOptions& options);
Call pull(Caller who, ConstBuffer in, Buffer out, const ServerPlan& plan,
          const CallOptions& options);
Call reduce(Caller who, ConstBuffer in, Buffer out, int root, Reduction op,
            const CallOptions& options);
Call gather(Caller who, ConstBuffer chunk, Buffer all, int root, const CallOptions& options);
Call scatter(Caller who, ConstBuffer all, Buffer chunk, int root, const CallOptions& options);
Call all_to_all(Caller who, ConstBuffer in, Buffer out, const CallOptions& options);
Call scan(Collective which, Caller who, ConstBuffer in, Buffer out, Reduction op,
          const CallOptions& options);

Call reduce_scatter_v(Caller who, ConstBuffer all, Buffer share, Counts counts, Reduction op,
                      const CallOptions& options);
Call all_gather_v(Caller who, ConstBuffer share, Buffer all, Counts counts,
                  const CallOptions& options);
Call gather_v(Caller who, ConstBuffer share, Buffer all, Counts counts, int root,
              const CallOptions& options);
Call scatter_v(Caller who, ConstBuffer all, Buffer share, Counts counts, int root,
               const CallOptions& options);
Call all_to_all_v(Caller who, ConstBuffer in, Counts gives, Buffer out, Counts gets,
                  const CallOptions& options);
Call send(Caller who, ConstBuffer data, int to, const CallOptions& options);
Call receive(Caller who, Buffer data, int from, const CallOptions& options);

// A call that is only planned: throws for a length, type or operation that all calls refuse.
void require_plannable(Collective collective, std::size_t bytes, ElementType type, ReduceOp op);

// The length of a whole gather or scatter: `all` states it at the root, and at other ranks if it
// has a count. If it has none there, all chunks are as long as this rank's.
std::size_t rooted_count(Caller who, std::size_t chunk, std::size_t all, int root);

// A send and a receive at once. If this rank is both receiver and sender, they are a copy from
// send.in to send.out.
struct Exchange {
  bool is_copy = false;
  Call send;
  Call receive;
};
Exchange exchange(Caller who, ConstBuffer sent, int to, Buffer received, int from,
                  const CallOptions& options);

}  // namespace checked_calls
}  // namespace kolo::inline v0
