// A call in both of its forms, before it is known whether the cache holds it.
//
// One function per operation. The blocking and the asynchronous form make the same request.
#pragma once

#include <cstddef>

#include "collectives/algorithms/dissemination.h"
#include "collectives/buffer.h"
#include "collectives/engine/call_cache.h"
#include "collectives/engine/checked_call.h"
#include "collectives/options.h"

namespace kolo::call_requests {

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

inline auto all_reduce(Caller who, ConstBuffer in, Buffer out, Reduction op,
                       const CallOptions& options) {
  return Request{CallKey{Collective::kAllReduce, in.type, op.op(), 0, in.count},
                 is_same(in, out),
                 in.data,
                 out.data,
                 options,
                 [who, in, out, op, &options] {
                   return checked_calls::all_reduce(who, in, out, op, options);
                 }};
}

inline auto reduce_scatter(Caller who, ConstBuffer all, Buffer chunk, Reduction op,
                           const CallOptions& options) {
  return Request{CallKey{Collective::kReduceScatter, all.type, op.op(), 0, all.count},
                 is_chunk(who, chunk, all, all.count),
                 all.data,
                 chunk.data,
                 options,
                 [who, all, chunk, op, &options] {
                   return checked_calls::reduce_scatter(who, all, chunk, op, options);
                 }};
}

inline auto all_gather(Caller who, ConstBuffer chunk, Buffer all, const CallOptions& options) {
  return Request{
      CallKey{Collective::kAllGather, all.type, ReduceOp::kSum, 0, all.count},
      is_chunk(who, chunk, all, all.count),
      chunk.data,
      all.data,
      options,
      [who, chunk, all, &options] { return checked_calls::all_gather(who, chunk, all, options); }};
}

inline auto broadcast(Caller who, Buffer data, int root, const CallOptions& options) {
  return Request{
      CallKey{Collective::kBroadcast, data.type, ReduceOp::kSum, root, data.count},
      true,
      data.data,
      data.data,
      options,
      [who, data, root, &options] { return checked_calls::broadcast(who, data, root, options); }};
}

inline auto reduce(Caller who, ConstBuffer in, Buffer out, int root, Reduction op,
                   const CallOptions& options) {
  return Request{CallKey{Collective::kReduce, in.type, op.op(), root, in.count},
                 who.rank != root || is_same(in, out),
                 in.data,
                 out.data,
                 options,
                 [who, in, out, root, op, &options] {
                   return checked_calls::reduce(who, in, out, root, op, options);
                 }};
}

inline auto gather(Caller who, ConstBuffer chunk, Buffer all, int root,
                   const CallOptions& options) {
  const std::size_t count = checked_calls::rooted_count(who, chunk.count, all.count, root);
  return Request{CallKey{Collective::kGather, chunk.type, ReduceOp::kSum, root, count},
                 is_chunk(who, chunk, all, count),
                 chunk.data,
                 all.data,
                 options,
                 [who, chunk, all, root, &options] {
                   return checked_calls::gather(who, chunk, all, root, options);
                 }};
}

inline auto scatter(Caller who, ConstBuffer all, Buffer chunk, int root,
                    const CallOptions& options) {
  const std::size_t count = checked_calls::rooted_count(who, chunk.count, all.count, root);
  return Request{CallKey{Collective::kScatter, chunk.type, ReduceOp::kSum, root, count},
                 is_chunk(who, chunk, all, count),
                 all.data,
                 chunk.data,
                 options,
                 [who, all, chunk, root, &options] {
                   return checked_calls::scatter(who, all, chunk, root, options);
                 }};
}

inline auto all_to_all(Caller who, ConstBuffer in, Buffer out, const CallOptions& options) {
  return Request{
      CallKey{Collective::kAllToAll, in.type, ReduceOp::kSum, 0, in.count},
      is_same(in, out),
      in.data,
      out.data,
      options,
      [who, in, out, &options] { return checked_calls::all_to_all(who, in, out, options); }};
}

inline auto scan(Collective which, Caller who, ConstBuffer in, Buffer out, Reduction op,
                 const CallOptions& options) {
  return Request{CallKey{which, in.type, op.op(), 0, in.count},
                 is_same(in, out),
                 in.data,
                 out.data,
                 options,
                 [which, who, in, out, op, &options] {
                   return checked_calls::scan(which, who, in, out, op, options);
                 }};
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

inline auto send(Caller who, ConstBuffer data, int to, const CallOptions& options) {
  return Request{CallKey::of_message(data.type, to, false, data.count),
                 true,
                 data.data,
                 nullptr,
                 options,
                 [who, data, to, &options] { return checked_calls::send(who, data, to, options); }};
}

inline auto receive(Caller who, Buffer data, int from, const CallOptions& options) {
  return Request{
      CallKey::of_message(data.type, from, true, data.count),
      true,
      nullptr,
      data.data,
      options,
      [who, data, from, &options] { return checked_calls::receive(who, data, from, options); }};
}

inline auto push_pull(Caller who, ConstBuffer in, Buffer out, Reduction op, const ServerPlan& plan,
                      const ServerUpdate& update, const CallOptions& options) {
  return Request{CallKey{Collective::kPushPull, in.type, op.op(), 0, in.count},
                 !update && is_cacheable(plan) && is_same(in, out),
                 in.data,
                 out.data,
                 options,
                 [who, in, out, op, &plan, &options] {
                   return checked_calls::push_pull(who, in, out, op, plan, options);
                 }};
}

inline auto push(Caller who, ConstBuffer in, Buffer out, Reduction op, const ServerPlan& plan,
                 const ServerUpdate& update, const CallOptions& options) {
  return Request{CallKey{Collective::kPush, in.type, op.op(), 0, in.count},
                 !update && is_cacheable(plan) && is_chunk(who, out, in, in.count),
                 in.data,
                 out.data,
                 options,
                 [who, in, out, op, &plan, &options] {
                   return checked_calls::push(who, in, out, op, plan, options);
                 }};
}

inline auto pull(Caller who, ConstBuffer in, Buffer out, const ServerPlan& plan,
                 const CallOptions& options) {
  return Request{
      CallKey{Collective::kPull, out.type, ReduceOp::kSum, 0, out.count},
      is_cacheable(plan) && is_chunk(who, in, out, out.count),
      in.data,
      out.data,
      options,
      [who, in, out, &plan, &options] { return checked_calls::pull(who, in, out, plan, options); }};
}

}  // namespace kolo::call_requests
