// A call in both of its forms, before it is known whether the cache holds it.
//
// One function per operation. The blocking and the asynchronous form make the same request. It
// refers to the arguments, and is used up while the call lasts.
#pragma once

#include <cstddef>

#include "collectives/algorithms/dissemination.h"
#include "collectives/buffer.h"
#include "collectives/engine/call_cache.h"
#include "collectives/engine/checked_call.h"
#include "collectives/options.h"

namespace kolo::inline v0::call_requests {

using checked_calls::Caller;

// The key of a call in the cache, and how to validate the call if it is not there.
template <typename Checked>
struct Request {
  CallKey key;
  // All that the key does not hold is as in a cached call: lengths and types agree.
  bool may_be_cached;
  const void* in;
  void* out;
  const CallOptions& options;
  Checked checked;
};
template <typename Checked>
Request(CallKey, bool, const void*, void*, const CallOptions&, Checked) -> Request<Checked>;

inline bool is_same(const ConstBuffer& in, const Buffer& out) {
  return in.count == out.count && in.type == out.type;
}

// `chunk` is this rank's of `all`, by count and type.
inline bool is_chunk(Caller who, const ConstBuffer& chunk, const ConstBuffer& all,
                     std::size_t count) {
  return chunk.type == all.type && chunk.count == chunk_count(count, who.size, who.rank);
}

template <typename Self>
auto all_reduce(const Self& self, const ConstBuffer& in, const Buffer& out, const Reduction& op,
                const CallOptions& options) {
  return Request{CallKey{Collective::kAllReduce, in.type, op.op(), 0, in.count},
                 is_same(in, out),
                 in.data,
                 out.data,
                 options,
                 [&] { return checked_calls::all_reduce(self.caller(), in, out, op, options); }};
}

template <typename Self>
auto reduce_scatter(const Self& self, const ConstBuffer& all, const Buffer& chunk,
                    const Reduction& op, const CallOptions& options) {
  return Request{
      CallKey{Collective::kReduceScatter, all.type, op.op(), 0, all.count},
      is_chunk(self.caller(), chunk, all, all.count),
      all.data,
      chunk.data,
      options,
      [&] { return checked_calls::reduce_scatter(self.caller(), all, chunk, op, options); }};
}

template <typename Self>
auto all_gather(const Self& self, const ConstBuffer& chunk, const Buffer& all,
                const CallOptions& options) {
  return Request{CallKey{Collective::kAllGather, all.type, ReduceOp::kSum, 0, all.count},
                 is_chunk(self.caller(), chunk, all, all.count),
                 chunk.data,
                 all.data,
                 options,
                 [&] { return checked_calls::all_gather(self.caller(), chunk, all, options); }};
}

template <typename Self>
auto broadcast(const Self& self, const Buffer& data, int root, const CallOptions& options) {
  return Request{
      CallKey{Collective::kBroadcast, data.type, ReduceOp::kSum, root, data.count},
      true,
      data.data,
      data.data,
      options,
      [&, root] { return checked_calls::broadcast(self.caller(), data, root, options); }};
}

template <typename Self>
auto reduce(const Self& self, const ConstBuffer& in, const Buffer& out, int root,
            const Reduction& op, const CallOptions& options) {
  return Request{
      CallKey{Collective::kReduce, in.type, op.op(), root, in.count},
      self.caller().rank != root || is_same(in, out),
      in.data,
      out.data,
      options,
      [&, root] { return checked_calls::reduce(self.caller(), in, out, root, op, options); }};
}

template <typename Self>
auto gather(const Self& self, const ConstBuffer& chunk, const Buffer& all, int root,
            const CallOptions& options) {
  const std::size_t count =
      checked_calls::rooted_count(self.caller(), chunk.count, all.count, root);
  return Request{
      CallKey{Collective::kGather, chunk.type, ReduceOp::kSum, root, count},
      is_chunk(self.caller(), chunk, all, count),
      chunk.data,
      all.data,
      options,
      [&, root] { return checked_calls::gather(self.caller(), chunk, all, root, options); }};
}

template <typename Self>
auto scatter(const Self& self, const ConstBuffer& all, const Buffer& chunk, int root,
             const CallOptions& options) {
  const std::size_t count =
      checked_calls::rooted_count(self.caller(), chunk.count, all.count, root);
  return Request{
      CallKey{Collective::kScatter, chunk.type, ReduceOp::kSum, root, count},
      is_chunk(self.caller(), chunk, all, count),
      all.data,
      chunk.data,
      options,
      [&, root] { return checked_calls::scatter(self.caller(), all, chunk, root, options); }};
}

template <typename Self>
auto all_to_all(const Self& self, const ConstBuffer& in, const Buffer& out,
                const CallOptions& options) {
  return Request{CallKey{Collective::kAllToAll, in.type, ReduceOp::kSum, 0, in.count},
                 is_same(in, out),
                 in.data,
                 out.data,
                 options,
                 [&] { return checked_calls::all_to_all(self.caller(), in, out, options); }};
}

template <typename Self>
auto scan(Collective which, const Self& self, const ConstBuffer& in, const Buffer& out,
          const Reduction& op, const CallOptions& options) {
  return Request{
      CallKey{which, in.type, op.op(), 0, in.count},
      is_same(in, out),
      in.data,
      out.data,
      options,
      [&, which] { return checked_calls::scan(which, self.caller(), in, out, op, options); }};
}

inline auto barrier(const CallOptions& options) {
  return Request{
      CallKey{Collective::kBarrier, ElementType::kInt32, ReduceOp::kSum, 0, kBarrierCount},
      true,
      nullptr,
      nullptr,
      options,
      [&options] { return checked_calls::barrier(options); }};
}

template <typename Self>
auto send(const Self& self, const ConstBuffer& data, int to, const CallOptions& options) {
  return Request{CallKey::of_message(data.type, to, false, data.count),
                 true,
                 data.data,
                 nullptr,
                 options,
                 [&, to] { return checked_calls::send(self.caller(), data, to, options); }};
}

template <typename Self>
auto receive(const Self& self, const Buffer& data, int from, const CallOptions& options) {
  return Request{CallKey::of_message(data.type, from, true, data.count),
                 true,
                 nullptr,
                 data.data,
                 options,
                 [&, from] { return checked_calls::receive(self.caller(), data, from, options); }};
}

template <typename Self>
auto push_pull(const Self& self, const ConstBuffer& in, const Buffer& out, const Reduction& op,
               const ServerPlan& plan, const ServerUpdate& update, const CallOptions& options) {
  return Request{
      CallKey{Collective::kPushPull, in.type, op.op(), 0, in.count},
      !update && is_cacheable(plan) && is_same(in, out),
      in.data,
      out.data,
      options,
      [&] { return checked_calls::push_pull(self.caller(), in, out, op, plan, options); }};
}

template <typename Self>
auto push(const Self& self, const ConstBuffer& in, const Buffer& out, const Reduction& op,
          const ServerPlan& plan, const ServerUpdate& update, const CallOptions& options) {
  return Request{CallKey{Collective::kPush, in.type, op.op(), 0, in.count},
                 !update && is_cacheable(plan) && is_chunk(self.caller(), out, in, in.count),
                 in.data,
                 out.data,
                 options,
                 [&] { return checked_calls::push(self.caller(), in, out, op, plan, options); }};
}

template <typename Self>
auto pull(const Self& self, const ConstBuffer& in, const Buffer& out, const ServerPlan& plan,
          const CallOptions& options) {
  return Request{CallKey{Collective::kPull, out.type, ReduceOp::kSum, 0, out.count},
                 is_cacheable(plan) && is_chunk(self.caller(), in, out, out.count),
                 in.data,
                 out.data,
                 options,
                 [&] { return checked_calls::pull(self.caller(), in, out, plan, options); }};
}

}  // namespace kolo::inline v0::call_requests
