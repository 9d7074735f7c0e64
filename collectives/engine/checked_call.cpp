#include "collectives/engine/checked_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/engine/argument_checks.h"

namespace kolo::inline v0::checked_calls {
namespace {

// Both buffers, and the elements where they would meet in place.
void take_buffers(Call& call, ConstBuffer in, Buffer out, std::size_t in_begin = 0,
                  std::size_t out_begin = 0) {
  const std::size_t width = call.element_bytes;
  call.in = in.data;
  call.out = out.data;
  const bool is_combined = is_reduction(call.collective) && call.reducer == nullptr;
  call.extents = {in.count * width, out.count * width, in_begin * width, out_begin * width,
                  is_combined ? width : 1};
  require_memory(call, {"in", in.data, in.count});
  require_memory(call, {"out", out.data, out.count});
  require_alignment(call, {"in", in.data, in.count});
  require_alignment(call, {"out", out.data, out.count});
  require_apart(call, call.extents, {"in", in.data, in.count}, {"out", out.data, out.count});
}

Call begin(Collective collective, std::size_t count, const Elements& of) {
  Call call;
  call.collective = collective;
  call.reducer = of.reducer;
  require_element(call, of);
  call.type = of.reducer == nullptr ? of.type : ElementType::kUint8;
  call.element_bytes = of.reducer == nullptr ? element_bytes(of.type) : of.reducer->element_bytes;
  const std::string_view name = of.options.algorithm;
  const bool needs_order = of.reducer != nullptr && !of.reducer->is_commutative;
  const std::uint8_t row =
      needs_order ? find_ordered_algorithm(collective, name) : find_algorithm(collective, name);
  if (!name.empty()) call.algorithm = row;
  call.count = count;
  call.segment_bytes = of.options.segment_bytes;
  call.is_persistent = of.options.is_persistent;
  call.scale = of.options.scale;
  call.timeout = of.options.timeout;
  call.stream = of.options.stream;
  if (call.stream && call.reducer != nullptr)
    reject(call, "a user function runs on the host: it cannot run on a device's stream");
  if (call.timeout.count() < 0) {
    reject(call, fmt::format("a timeout of {} ms: give more than 0, or 0 for the communicator's",
                             call.timeout.count()));
  }
  if (!is_reduction(collective)) require_scale(call);
  require_count(call, count);
  return call;
}

// A form whose counts all ranks know.
Call begin(Collective collective, Caller who, Counts counts, const Elements& of) {
  Call call = begin(collective, 0, of);
  require_counts(call, who, "counts", counts);
  call.count = sum(counts);
  call.lengths.assign(counts.begin(), counts.end());
  return call;
}

// Elements before `rank`'s.
std::size_t before(Counts counts, int rank) {
  return sum(counts.first(static_cast<std::size_t>(rank)));
}

// A form whose ranks know their own counts: by default with the algorithm that asks no more.
Call begin_own(Collective collective, const ConstBuffer& buffer, CallOptions options) {
  if (options.algorithm.empty()) options.algorithm = own_lengths_algorithm(collective);
  Call call = begin(collective, 0, {buffer, options});
  if (!algorithms()[call.algorithm].takes_own_lengths) {
    reject(call, fmt::format("algorithm '{}' needs the counts of all ranks; '{}' does not",
                             options.algorithm, own_lengths_algorithm(collective)));
  }
  call.has_own_lengths = true;
  return call;
}

void refuse_average(const Call& scan) {
  if (scan.op != ReduceOp::kAverage) return;
  reject(scan,
         "an average is not defined here, since each rank's sum has a different number of terms");
}

}  // namespace

void require_plannable(Collective collective, std::size_t bytes, ElementType type, ReduceOp op) {
  if (collective > Collective::kMessage) return;  // the planner refuses it
  const std::size_t width = std::max<std::size_t>(element_bytes(type), 1);
  const std::size_t count = bytes / width + (bytes % width == 0 ? 0 : 1);
  Call call = begin(collective, count, {ConstBuffer(nullptr, 0, type), {}});
  if (!is_reduction(collective)) return;
  take_op(call, op);
  if (collective == Collective::kScan || collective == Collective::kExclusiveScan)
    refuse_average(call);
}

std::size_t rooted_count(Caller who, std::size_t chunk, std::size_t all, int root) {
  if (who.rank == root || all > 0) return all;
  return chunk * static_cast<std::size_t>(who.size);
}

Call all_reduce(Caller who, ConstBuffer in, Buffer out, Reduction op, const CallOptions& options) {
  Call call = begin(Collective::kAllReduce, in.count, {in, op, options});
  take_op(call, op.op());
  require_same_count(call, who, in, out);
  take_buffers(call, in, out);
  return call;
}

Call reduce_scatter(Caller who, ConstBuffer all, Buffer chunk, Reduction op,
                    const CallOptions& options) {
  Call call = begin(Collective::kReduceScatter, all.count, {all, op, options});
  take_op(call, op.op());
  require_same_type(call, who, all, chunk);
  require_chunk(call, who, chunk, all.count);
  take_buffers(call, all, chunk, chunk_begin(all.count, who.size, who.rank));
  return call;
}

Call all_gather(Caller who, ConstBuffer chunk, Buffer all, const CallOptions& options) {
  Call call = begin(Collective::kAllGather, all.count, {all, options});
  require_same_type(call, who, chunk, all);
  require_chunk(call, who, chunk, all.count);
  take_buffers(call, chunk, all, 0, chunk_begin(all.count, who.size, who.rank));
  return call;
}

Call broadcast(Caller who, Buffer data, int root, const CallOptions& options) {
  Call call = begin(Collective::kBroadcast, data.count, {data, options});
  call.root = root;
  require_root(call, who);
  call.in = data.data;
  call.out = data.data;
  call.extents = {data.count * call.element_bytes, data.count * call.element_bytes};
  require_memory(call, {"data", data.data, data.count});
  return call;
}

Call barrier(const CallOptions& options) {
  return begin(Collective::kBarrier, kBarrierCount,
               {ConstBuffer(nullptr, 0, ElementType::kInt32), options});
}

namespace {

// What a rank is to a plan, and where its share lies, if it serves.
struct Role {
  bool works = true;
  bool serves = false;
  std::size_t begin = 0;
  std::size_t count = 0;
};

Role role_of(Caller who, const ServerPlan& plan, std::size_t count) {
  const ServerShare share = share_of(plan, who.rank, who.size, count);
  const bool is_named = std::ranges::find(plan.servers, who.rank) != plan.servers.end();
  return {!is_named, is_named || plan.everywhere, share.begin, share.count};
}

// The buffer `name` of a server holds its share.
void require_share(const Call& call, Caller who, const Role& role, std::string_view name,
                   std::size_t given, std::size_t all) {
  if (!role.serves || given == role.count) return;
  reject(call, fmt::format("rank {} of {}: this server's share of {} elements has {}, but '{}' has "
                           "{}: pass a buffer of that length",
                           who.rank, who.size, all, role.count, name, given));
}

}  // namespace

Call push_pull(Caller who, ConstBuffer in, Buffer out, Reduction op, const ServerPlan& plan,
               const CallOptions& options) {
  Call call = begin(Collective::kPushPull, in.count, {in, op, options});
  take_op(call, op.op());
  call.servers = &plan;
  if (std::ranges::find(plan.servers, who.rank) == plan.servers.end()) {
    require_same_count(call, who, in, out);
    take_buffers(call, in, out);
  } else if (in.data != nullptr || out.data != nullptr) {
    reject(call, "a dedicated server gives and gets no data: pass null for 'in' and 'out'");
  }
  return call;
}

Call push(Caller who, ConstBuffer in, Buffer out, Reduction op, const ServerPlan& plan,
          const CallOptions& options) {
  Call call = begin(Collective::kPush, in.count, {in, op, options});
  take_op(call, op.op());
  call.servers = &plan;
  const Role role = role_of(who, plan, call.count);
  if (!role.works && in.data != nullptr)
    reject(call, "a dedicated server gives no data: pass null for 'in'");
  if (!role.serves && out.data != nullptr)
    reject(call, "a worker that is not a server gets no data: pass null for 'out'");
  require_same_type(call, who, in, out);
  require_share(call, who, role, "out", out.count, in.count);
  if (!role.works) in.count = 0;
  take_buffers(call, in, out, role.begin);
  return call;
}

Call pull(Caller who, ConstBuffer in, Buffer out, const ServerPlan& plan,
          const CallOptions& options) {
  Call call = begin(Collective::kPull, out.count, {out, options});
  call.servers = &plan;
  const Role role = role_of(who, plan, call.count);
  if (!role.serves && in.data != nullptr)
    reject(call, "a worker that is not a server gives no data: pass null for 'in'");
  if (!role.works && out.data != nullptr)
    reject(call, "a dedicated server gets no data: pass null for 'out'");
  require_same_type(call, who, in, out);
  require_share(call, who, role, "in", in.count, out.count);
  if (!role.works) out.count = 0;
  take_buffers(call, in, out, 0, role.begin);
  return call;
}

Call reduce(Caller who, ConstBuffer in, Buffer out, int root, Reduction op,
            const CallOptions& options) {
  Call call = begin(Collective::kReduce, in.count, {in, op, options});
  take_op(call, op.op());
  call.root = root;
  require_root(call, who);
  if (who.rank == root) {
    require_same_count(call, who, in, out);
  } else {
    out = {};
  }
  take_buffers(call, in, out);
  return call;
}

Call gather(Caller who, ConstBuffer chunk, Buffer all, int root, const CallOptions& options) {
  const std::size_t count = rooted_count(who, chunk.count, all.count, root);
  Call call = begin(Collective::kGather, count, {chunk, options});
  call.root = root;
  require_root(call, who);
  require_same_type(call, who, chunk, all);
  require_chunk(call, who, chunk, count);
  if (who.rank != root) all = {};
  take_buffers(call, chunk, all, 0, chunk_begin(count, who.size, who.rank));
  return call;
}

Call scatter(Caller who, ConstBuffer all, Buffer chunk, int root, const CallOptions& options) {
  const std::size_t count = rooted_count(who, chunk.count, all.count, root);
  Call call = begin(Collective::kScatter, count, {chunk, options});
  call.root = root;
  require_root(call, who);
  require_same_type(call, who, all, chunk);
  require_chunk(call, who, chunk, count);
  if (who.rank != root) all = {};
  take_buffers(call, all, chunk, chunk_begin(count, who.size, who.rank));
  return call;
}

Call all_to_all(Caller who, ConstBuffer in, Buffer out, const CallOptions& options) {
  Call call = begin(Collective::kAllToAll, in.count, {in, options});
  require_same_count(call, who, in, out, ", or use all_to_all_v");
  if (in.count % static_cast<std::size_t>(who.size) != 0) {
    reject(call, fmt::format("{} elements cannot be split equally among {} ranks; use all_to_all_v",
                             in.count, who.size));
  }
  take_buffers(call, in, out);
  return call;
}

Call scan(Collective which, Caller who, ConstBuffer in, Buffer out, Reduction op,
          const CallOptions& options) {
  Call call = begin(which, in.count, {in, op, options});
  take_op(call, op.op());
  refuse_average(call);
  if (which == Collective::kScan || who.rank > 0) {
    require_same_count(call, who, in, out);
  } else {
    out = {};
  }
  take_buffers(call, in, out);
  return call;
}

Call reduce_scatter_v(Caller who, ConstBuffer all, Buffer share, Counts counts, Reduction op,
                      const CallOptions& options) {
  Call call = begin(Collective::kReduceScatter, who, counts, {all, op, options});
  take_op(call, op.op());
  require_same_type(call, who, all, share);
  require_sum(call, who, "counts", call.count, all.count);
  require_own(call, who, counts, share.count);
  take_buffers(call, all, share, before(counts, who.rank));
  return call;
}

Call all_gather_v(Caller who, ConstBuffer share, Buffer all, Counts counts,
                  const CallOptions& options) {
  Call call = begin(Collective::kAllGather, who, counts, {all, options});
  require_same_type(call, who, share, all);
  require_sum(call, who, "counts", call.count, all.count);
  require_own(call, who, counts, share.count);
  take_buffers(call, share, all, 0, before(counts, who.rank));
  return call;
}

namespace {

// Gather and scatter: the root knows all lengths, the others their own.
void take_lengths(Call& call, Caller who, Counts counts, std::size_t share, std::size_t all) {
  require_root(call, who);
  require_count(call, share);
  call.lengths.assign(static_cast<std::size_t>(who.size), 0);
  call.lengths[static_cast<std::size_t>(who.rank)] = share;
  if (who.rank != call.root) return;
  require_counts(call, who, "counts", counts);
  require_sum(call, who, "counts", sum(counts), all);
  require_own(call, who, counts, share);
  call.lengths.assign(counts.begin(), counts.end());
}

}  // namespace

Call gather_v(Caller who, ConstBuffer share, Buffer all, Counts counts, int root,
              const CallOptions& options) {
  Call call = begin_own(Collective::kGather, share, options);
  call.root = root;
  take_lengths(call, who, counts, share.count, all.count);
  const bool is_root = who.rank == root;
  if (is_root) require_same_type(call, who, share, all);
  if (!is_root) all = {};
  take_buffers(call, share, all, 0, is_root ? before(counts, root) : 0);
  return call;
}

Call scatter_v(Caller who, ConstBuffer all, Buffer share, Counts counts, int root,
               const CallOptions& options) {
  Call call = begin_own(Collective::kScatter, share, options);
  call.root = root;
  take_lengths(call, who, counts, share.count, all.count);
  const bool is_root = who.rank == root;
  if (is_root) require_same_type(call, who, all, share);
  if (!is_root) all = {};
  take_buffers(call, all, share, is_root ? before(counts, root) : 0);
  return call;
}

Call all_to_all_v(Caller who, ConstBuffer in, Counts gives, Buffer out, Counts gets,
                  const CallOptions& options) {
  Call call = begin_own(Collective::kAllToAll, in, options);
  require_same_type(call, who, in, out);
  require_counts(call, who, "gives", gives);
  require_counts(call, who, "gets", gets);
  require_sum(call, who, "gives", sum(gives), in.count);
  require_sum(call, who, "gets", sum(gets), out.count);
  const auto mine = static_cast<std::size_t>(who.rank);
  if (gives[mine] != gets[mine]) {
    reject(call, fmt::format("this rank gives itself {} elements and gets {} from itself",
                             gives[mine], gets[mine]));
  }
  call.lengths.assign(gives.begin(), gives.end());
  call.lengths.insert(call.lengths.end(), gets.begin(), gets.end());
  take_buffers(call, in, out);
  if (in.data == out.data && in.data != nullptr && who.size > 1) {
    reject(call,
           "'in' and 'out' are the same memory; all_to_all can work in place, all_to_all_v cannot");
  }
  return call;
}

namespace {

Call message(Caller who, ConstBuffer in, Buffer out, std::size_t count, const Elements& of,
             int from, int to) {
  Call call = begin(Collective::kMessage, count, of);
  const int other = who.rank == from ? to : from;
  if (other < 0 || other >= who.size) {
    reject(call, fmt::format("there is no rank {}; expected 0 to {} (this is rank {})", other,
                             who.size - 1, who.rank));
  }
  if (other == who.rank)
    reject(call, fmt::format("rank {} is this rank itself; a message needs another rank", other));
  call.root = from;
  call.peer = to;
  take_buffers(call, in, out);
  return call;
}

}  // namespace

Call send(Caller who, ConstBuffer data, int to, const CallOptions& options) {
  return message(who, data, {}, data.count, {data, options}, who.rank, to);
}

Call receive(Caller who, Buffer data, int from, const CallOptions& options) {
  return message(who, {}, data, data.count, {data, options}, from, who.rank);
}

Exchange exchange(Caller who, ConstBuffer sent, int to, Buffer received, int from,
                  const CallOptions& options) {
  Exchange both;
  both.is_copy = to == who.rank && from == who.rank;
  Call& send = both.send;
  if (both.is_copy) {
    send = begin(Collective::kMessage, sent.count, {sent, options});
    require_same_type(send, who, sent, received);
    take_buffers(send, sent, received);
    if (sent.count != received.count) {
      reject(send, fmt::format("this rank sends itself {} elements and receives {}", sent.count,
                               received.count));
    }
  } else {
    send = checked_calls::send(who, sent, to, options);
    both.receive = checked_calls::receive(who, received, from, options);
  }
  if (sent.data == received.data && sent.count > 0 && received.count > 0) {
    reject(send, "'sent' and 'received' are the same memory; pass separate memory");
  }
  const std::size_t received_bytes = both.is_copy ? received.count * send.element_bytes
                                                  : received.count * both.receive.element_bytes;
  require_apart(send, {sent.count * send.element_bytes, received_bytes},
                {"sent", sent.data, sent.count}, {"received", received.data, received.count});
  return both;
}

}  // namespace kolo::inline v0::checked_calls
