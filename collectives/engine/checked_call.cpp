#include "collectives/engine/checked_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/executor/call_header.h"

namespace kolo::checked_calls {
namespace {

// A caller's buffer: `count` elements of the call's type at `data`.
struct Buffer {
  std::string_view name;
  const void* data = nullptr;
  std::size_t count = 0;
};

[[noreturn]] void reject(const Call& call, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", to_string(call.collective), what));
}

std::string name_of_element(const Call& call) {
  if (call.reducer == nullptr) return std::string(to_string(call.type));
  return fmt::format("{} bytes", call.element_bytes);
}

void require_count(const Call& call, std::size_t count) {
  const std::size_t most = std::min(kLongestCount, PTRDIFF_MAX / call.element_bytes);
  if (count > most) {
    reject(call, fmt::format("{} elements of {} are more than memory can hold; the most is {}",
                             count, name_of_element(call), most));
  }
}

void require_memory(const Call& call, const Buffer& buffer) {
  if (buffer.data == nullptr && buffer.count > 0) {
    reject(call, fmt::format("'{}' is null, but should hold {} {}{}", buffer.name, buffer.count,
                             call.reducer == nullptr ? "" : "elements of ", name_of_element(call)));
  }
}

void require_alignment(const Call& call, const Buffer& buffer) {
  const std::size_t over = reinterpret_cast<std::uintptr_t>(buffer.data) % call.extents.alignment;
  if (buffer.count == 0 || over == 0) return;
  reject(call, fmt::format("'{}' is not aligned to {}: its address is {} past a multiple of {}",
                           buffer.name, to_string(call.type), over, call.extents.alignment));
}

void require_root(const Call& call, Caller who) {
  if (call.root < 0 || call.root >= who.size) {
    reject(call, fmt::format("root {} is not a rank; there are 0 to {}", call.root, who.size - 1));
  }
}

void require_reducer(const Call& call) {
  const UserReduceOp& reducer = *call.reducer;
  if (!reducer.combine) reject(call, "the reducer has no function");
  if (reducer.element_bytes < 1 || reducer.element_bytes > kLongestElement) {
    reject(call, fmt::format("the reducer's elements have {} bytes; 1 to {} are possible",
                             reducer.element_bytes, kLongestElement));
  }
}

void require_scale(const Call& call) {
  if (call.op != ReduceOp::kScaledSum) {
    if (call.scale == 1) return;
    reject(call, fmt::format("a scale of {} is allowed for scaled_sum only", call.scale));
  }
  const bool is_wide = call.type == ElementType::kFloat64;
  if (!std::isfinite(is_wide ? call.scale : static_cast<float>(call.scale))) {
    reject(call, fmt::format("a scale of {} is not finite in {}", call.scale,
                             to_string(is_wide ? call.type : ElementType::kFloat32)));
  }
}

void take_op(Call& call, ReduceOp op) {
  if (op > ReduceOp::kUser) {
    reject(call, fmt::format("{} is not a reduction operation", static_cast<int>(op)));
  }
  if (op == ReduceOp::kUser && call.reducer == nullptr) {
    reject(call, "pass a user function as a UserReduceOp, instead of type and operation");
  }
  if (call.reducer == nullptr && !is_defined(call.type, op)) {
    reject(call,
           fmt::format("{} is not defined for {}; it is for {}", to_string(op),
                       to_string(call.type), op == ReduceOp::kScaledSum ? "floats" : "integers"));
  }
  call.op = op;
  require_scale(call);
}

void require_apart(const Call& call, const Extents& extents, const Buffer& in, const Buffer& out) {
  if (extents.keep_apart(in.data, out.data)) return;
  reject(
      call,
      fmt::format(
          "'{}' and '{}' overlap without being in place; pass the same memory or separate memory",
          in.name, out.name));
}

// Both buffers, and the elements where they would meet in place.
void take_buffers(Call& call, const void* in, std::size_t in_count, void* out,
                  std::size_t out_count, std::size_t in_begin = 0, std::size_t out_begin = 0) {
  const std::size_t width = call.element_bytes;
  call.in = in;
  call.out = out;
  const bool is_combined = is_reduction(call.collective) && call.reducer == nullptr;
  call.extents = {in_count * width, out_count * width, in_begin * width, out_begin * width,
                  is_combined ? width : 1};
  require_memory(call, {"in", in, in_count});
  require_memory(call, {"out", out, out_count});
  require_alignment(call, {"in", in, in_count});
  require_alignment(call, {"out", out, out_count});
  require_apart(call, call.extents, {"in", in, in_count}, {"out", out, out_count});
}

Call begin(Collective collective, std::size_t count, Elements of) {
  Call call;
  call.collective = collective;
  if (of.reducer == nullptr && element_bytes(of.type) == 0) {
    reject(call, fmt::format("{} is not an element type", static_cast<int>(of.type)));
  }
  call.type = of.type;
  call.reducer = of.reducer;
  if (call.reducer != nullptr) require_reducer(call);
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

std::size_t sum(Counts counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

void require_counts(const Call& call, Caller who, std::string_view name, Counts counts) {
  if (counts.size() != static_cast<std::size_t>(who.size)) {
    reject(call, fmt::format("'{}' has {} entries for {} ranks; give one for each", name,
                             counts.size(), who.size));
  }
  for (const std::size_t count : counts) require_count(call, count);
  require_count(call, sum(counts));
}

// A form whose counts all ranks know.
Call begin(Collective collective, Caller who, Counts counts, Elements of) {
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
Call begin_own(Collective collective, Elements of) {
  CallOptions options = of.options;
  if (options.algorithm.empty()) options.algorithm = own_lengths_algorithm(collective);
  Call call = begin(collective, 0, {of.type, options});
  if (!algorithms()[call.algorithm].takes_own_lengths) {
    reject(call, fmt::format("algorithm '{}' needs the counts of all ranks; '{}' does not",
                             options.algorithm, own_lengths_algorithm(collective)));
  }
  call.has_own_lengths = true;
  return call;
}

}  // namespace

Call all_reduce(const void* in, void* out, std::size_t count, Elements of, ReduceOp op) {
  Call call = begin(Collective::kAllReduce, count, of);
  take_op(call, op);
  take_buffers(call, in, count, out, count);
  return call;
}

Call reduce_scatter(Caller who, const void* in, void* out, std::size_t count, Elements of,
                    ReduceOp op) {
  Call call = begin(Collective::kReduceScatter, count, of);
  take_op(call, op);
  take_buffers(call, in, count, out, chunk_count(count, who.size, who.rank),
               chunk_begin(count, who.size, who.rank));
  return call;
}

Call all_gather(Caller who, const void* in, void* out, std::size_t count, Elements of) {
  Call call = begin(Collective::kAllGather, count, of);
  take_buffers(call, in, chunk_count(count, who.size, who.rank), out, count, 0,
               chunk_begin(count, who.size, who.rank));
  return call;
}

Call broadcast(Caller who, void* data, std::size_t count, Elements of, int root) {
  Call call = begin(Collective::kBroadcast, count, of);
  call.root = root;
  require_root(call, who);
  call.in = data;
  call.out = data;
  call.extents = {count * call.element_bytes, count * call.element_bytes};
  require_memory(call, {"data", data, count});
  return call;
}

Call barrier(const CallOptions& options) {
  return begin(Collective::kBarrier, kBarrierCount, {ElementType::kInt32, options});
}

namespace {

void require_choice(const Call& call, const ServerPlan& plan) {
  if (plan.everywhere && !plan.servers.empty()) {
    reject(call,
           "the plan lists servers, but also makes every rank a server; use only one of these");
  }
}

// What a rank is to a plan, and where its chunk lies, if it serves one.
struct Role {
  bool works = true;
  bool serves = false;
  std::size_t begin = 0;
  std::size_t count = 0;
};

Role role_of(Caller who, const ServerPlan& plan, std::size_t count) {
  const auto found = std::ranges::find(plan.servers, who.rank);
  const bool is_named = found != plan.servers.end();
  if (!is_named && !plan.everywhere) return {};
  const int chunks = is_named ? static_cast<int>(plan.servers.size()) : who.size;
  const int chunk = is_named ? static_cast<int>(found - plan.servers.begin()) : who.rank;
  return {!is_named, true, chunk_begin(count, chunks, chunk), chunk_count(count, chunks, chunk)};
}

}  // namespace

Call push_pull(Caller who, const void* in, void* out, std::size_t count, Elements of, ReduceOp op,
               const ServerPlan& plan) {
  Call call = begin(Collective::kPushPull, count, of);
  require_choice(call, plan);
  take_op(call, op);
  call.servers = &plan;
  if (std::ranges::find(plan.servers, who.rank) == plan.servers.end()) {
    take_buffers(call, in, count, out, count);
  } else if (in != nullptr || out != nullptr) {
    reject(call, "a dedicated server gives and gets no data: pass null for 'in' and 'out'");
  }
  return call;
}

Call push(Caller who, const void* in, void* out, std::size_t count, Elements of, ReduceOp op,
          const ServerPlan& plan) {
  Call call = begin(Collective::kPush, count, of);
  require_choice(call, plan);
  take_op(call, op);
  call.servers = &plan;
  const Role role = role_of(who, plan, count);
  if (!role.works && in != nullptr)
    reject(call, "a dedicated server gives no data: pass null for 'in'");
  if (!role.serves && out != nullptr)
    reject(call, "a worker that is no server gets no data: pass null for 'out'");
  take_buffers(call, in, role.works ? count : 0, out, role.count, role.begin);
  return call;
}

Call pull(Caller who, const void* in, void* out, std::size_t count, Elements of,
          const ServerPlan& plan) {
  Call call = begin(Collective::kPull, count, of);
  require_choice(call, plan);
  call.servers = &plan;
  const Role role = role_of(who, plan, count);
  if (!role.serves && in != nullptr)
    reject(call, "a worker that is no server gives no data: pass null for 'in'");
  if (!role.works && out != nullptr)
    reject(call, "a dedicated server gets no data: pass null for 'out'");
  take_buffers(call, in, role.count, out, role.works ? count : 0, 0, role.begin);
  return call;
}

Call reduce(Caller who, const void* in, void* out, std::size_t count, Elements of, ReduceOp op,
            int root) {
  Call call = begin(Collective::kReduce, count, of);
  take_op(call, op);
  call.root = root;
  require_root(call, who);
  const bool is_root = who.rank == root;
  take_buffers(call, in, count, is_root ? out : nullptr, is_root ? count : 0);
  return call;
}

Call gather(Caller who, const void* in, void* out, std::size_t count, Elements of, int root) {
  Call call = begin(Collective::kGather, count, of);
  call.root = root;
  require_root(call, who);
  const bool is_root = who.rank == root;
  take_buffers(call, in, chunk_count(count, who.size, who.rank), is_root ? out : nullptr,
               is_root ? count : 0, 0, chunk_begin(count, who.size, who.rank));
  return call;
}

Call scatter(Caller who, const void* in, void* out, std::size_t count, Elements of, int root) {
  Call call = begin(Collective::kScatter, count, of);
  call.root = root;
  require_root(call, who);
  const bool is_root = who.rank == root;
  take_buffers(call, is_root ? in : nullptr, is_root ? count : 0, out,
               chunk_count(count, who.size, who.rank), chunk_begin(count, who.size, who.rank));
  return call;
}

Call all_to_all(Caller who, const void* in, void* out, std::size_t count, Elements of) {
  Call call = begin(Collective::kAllToAll, count, of);
  if (count % static_cast<std::size_t>(who.size) != 0) {
    reject(call, fmt::format("{} elements cannot be split equally among {} ranks; use all_to_all_v",
                             count, who.size));
  }
  take_buffers(call, in, count, out, count);
  return call;
}

Call scan(Collective which, Caller who, const void* in, void* out, std::size_t count, Elements of,
          ReduceOp op) {
  Call call = begin(which, count, of);
  take_op(call, op);
  if (op == ReduceOp::kAverage) {
    reject(call,
           "an average is not defined here, since each rank's sum has another number of terms");
  }
  const bool has_output = which == Collective::kScan || who.rank > 0;
  take_buffers(call, in, count, has_output ? out : nullptr, has_output ? count : 0);
  return call;
}

Call reduce_scatter_v(Caller who, const void* in, void* out, Counts counts, Elements of,
                      ReduceOp op) {
  Call call = begin(Collective::kReduceScatter, who, counts, of);
  take_op(call, op);
  take_buffers(call, in, call.count, out, counts[static_cast<std::size_t>(who.rank)],
               before(counts, who.rank));
  return call;
}

Call all_gather_v(Caller who, const void* in, void* out, Counts counts, Elements of) {
  Call call = begin(Collective::kAllGather, who, counts, of);
  take_buffers(call, in, counts[static_cast<std::size_t>(who.rank)], out, call.count, 0,
               before(counts, who.rank));
  return call;
}

namespace {

// Gather and scatter: the root knows all lengths, the others their own.
void take_lengths(Call& call, Caller who, Counts counts, std::size_t mine) {
  require_root(call, who);
  require_count(call, mine);
  call.lengths.assign(static_cast<std::size_t>(who.size), 0);
  call.lengths[static_cast<std::size_t>(who.rank)] = mine;
  if (who.rank != call.root) return;
  require_counts(call, who, "counts", counts);
  if (counts[static_cast<std::size_t>(who.rank)] != mine) {
    reject(call, fmt::format("'counts' says that this rank has {} elements, 'count' that it has {}",
                             counts[static_cast<std::size_t>(who.rank)], mine));
  }
  call.lengths.assign(counts.begin(), counts.end());
}

}  // namespace

Call gather_v(Caller who, const void* in, std::size_t count, void* out, Counts counts, Elements of,
              int root) {
  Call call = begin_own(Collective::kGather, of);
  call.root = root;
  take_lengths(call, who, counts, count);
  const bool is_root = who.rank == root;
  take_buffers(call, in, count, is_root ? out : nullptr, is_root ? sum(counts) : 0, 0,
               is_root ? before(counts, root) : 0);
  return call;
}

Call scatter_v(Caller who, const void* in, Counts counts, void* out, std::size_t count, Elements of,
               int root) {
  Call call = begin_own(Collective::kScatter, of);
  call.root = root;
  take_lengths(call, who, counts, count);
  const bool is_root = who.rank == root;
  take_buffers(call, is_root ? in : nullptr, is_root ? sum(counts) : 0, out, count,
               is_root ? before(counts, root) : 0);
  return call;
}

Call all_to_all_v(Caller who, const void* in, Counts gives, void* out, Counts gets, Elements of) {
  Call call = begin_own(Collective::kAllToAll, of);
  require_counts(call, who, "gives", gives);
  require_counts(call, who, "gets", gets);
  const auto mine = static_cast<std::size_t>(who.rank);
  if (gives[mine] != gets[mine]) {
    reject(call, fmt::format("this rank gives itself {} elements and gets {} from itself",
                             gives[mine], gets[mine]));
  }
  call.lengths.assign(gives.begin(), gives.end());
  call.lengths.insert(call.lengths.end(), gets.begin(), gets.end());
  take_buffers(call, in, sum(gives), out, sum(gets));
  if (in == out && in != nullptr && who.size > 1) {
    reject(call,
           "'in' and 'out' are the same memory; all_to_all can work in place, all_to_all_v cannot");
  }
  return call;
}

Call message(Caller who, const void* in, void* out, std::size_t count, Elements of, int from,
             int to) {
  Call call = begin(Collective::kMessage, count, of);
  const int other = who.rank == from ? to : from;
  if (other < 0 || other >= who.size) {
    reject(call, fmt::format("there is no rank {}; there are 0 to {}, and this is {}", other,
                             who.size - 1, who.rank));
  }
  if (other == who.rank)
    reject(call, fmt::format("rank {} is this rank itself; a message needs another rank", other));
  call.root = from;
  call.peer = to;
  const bool sends = who.rank == from;
  take_buffers(call, in, sends ? count : 0, out, sends ? 0 : count);
  return call;
}

Exchange exchange(Caller who, Sent sent, Received received, Elements of) {
  Exchange both;
  both.is_copy = sent.to == who.rank && received.from == who.rank;
  Call& send = both.send;
  Call& receive = both.receive;
  if (both.is_copy) {
    send = begin(Collective::kMessage, sent.count, of);
    take_buffers(send, sent.data, sent.count, received.data, received.count);
    if (sent.count != received.count) {
      reject(send, fmt::format("this rank sends itself {} elements and receives {}", sent.count,
                               received.count));
    }
  } else {
    send = message(who, sent.data, nullptr, sent.count, of, who.rank, sent.to);
    receive = message(who, nullptr, received.data, received.count, of, received.from, who.rank);
  }
  if (sent.data == received.data && sent.count > 0 && received.count > 0) {
    reject(send, "'send_data' and 'receive_data' are the same memory; pass separate memory");
  }
  const std::size_t width = send.element_bytes;
  require_apart(send, {sent.count * width, received.count * width},
                {"send_data", sent.data, sent.count},
                {"receive_data", received.data, received.count});
  return both;
}

}  // namespace kolo::checked_calls
