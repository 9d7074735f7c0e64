#include "collectives/engine/argument_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>

#include "collectives/executor/call_header.h"

namespace kolo::inline v0::checked_calls {
namespace {

std::string name_of_element(const Call& call) {
  if (call.reducer == nullptr) return std::string(to_string(call.type));
  return fmt::format("{} bytes", call.element_bytes);
}

void require_reducer(const Call& call) {
  const UserReduceOp& reducer = *call.reducer;
  if (!reducer.combine) reject(call, "the reducer has no function");
  if (reducer.element_bytes < 1 || reducer.element_bytes > kLongestElement) {
    reject(call, fmt::format("the reducer's elements have {} bytes; 1 to {} are possible",
                             reducer.element_bytes, kLongestElement));
  }
}

std::string name_of_type(ElementType type, std::size_t user_bytes) {
  if (type == kUserElement) return fmt::format("elements of {} bytes", user_bytes);
  return std::string(to_string(type));
}

}  // namespace

void reject(const Call& call, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", to_string(call.collective), what));
}

void require_count(const Call& call, std::size_t count) {
  const std::size_t most = std::min(kLongestCount, PTRDIFF_MAX / call.element_bytes);
  if (count > most) {
    reject(call, fmt::format("{} elements of {} are more than memory can hold; the most is {}",
                             count, name_of_element(call), most));
  }
}

void require_memory(const Call& call, const Named& buffer) {
  if (buffer.data == nullptr && buffer.count > 0) {
    reject(call, fmt::format("'{}' is null, but should hold {} {}{}", buffer.name, buffer.count,
                             call.reducer == nullptr ? "" : "elements of ", name_of_element(call)));
  }
}

void require_alignment(const Call& call, const Named& buffer) {
  const std::size_t over = reinterpret_cast<std::uintptr_t>(buffer.data) % call.extents.alignment;
  if (buffer.count == 0 || over == 0) return;
  reject(call, fmt::format("'{}' is not aligned to {}: its address is {} past a multiple of {}",
                           buffer.name, to_string(call.type), over, call.extents.alignment));
}

void require_root(const Call& call, Caller who) {
  if (call.root < 0 || call.root >= who.size) {
    reject(call, fmt::format("root {} is not a rank; expected 0 to {}", call.root, who.size - 1));
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
    reject(call, "pass a user function as a UserReduceOp, in the place of the operation");
  }
  if (call.reducer == nullptr && !is_defined(call.type, op)) {
    reject(call,
           fmt::format("{} is not defined for {}; it is for {}", to_string(op),
                       to_string(call.type), op == ReduceOp::kScaledSum ? "floats" : "integers"));
  }
  call.op = op;
  require_scale(call);
}

void require_apart(const Call& call, const Extents& extents, const Named& in, const Named& out) {
  if (extents.keep_apart(in.data, out.data)) return;
  reject(call, fmt::format("'{}' and '{}' overlap without being in place; pass the same memory or "
                           "separate memory",
                           in.name, out.name));
}

void require_same_type(const Call& call, Caller who, const ConstBuffer& in,
                       const ConstBuffer& out) {
  if (in.type == out.type && in.user_bytes == out.user_bytes) return;
  if ((in.data == nullptr && in.count == 0) || (out.data == nullptr && out.count == 0)) return;
  reject(call, fmt::format("rank {} of {}: 'in' holds {}, but 'out' {}: pass buffers of one type",
                           who.rank, who.size, name_of_type(in.type, in.user_bytes),
                           name_of_type(out.type, out.user_bytes)));
}

void require_same_count(const Call& call, Caller who, const ConstBuffer& in, const Buffer& out,
                        std::string_view else_use) {
  require_same_type(call, who, in, out);
  if (in.count == out.count) return;
  reject(call, fmt::format("rank {} of {}: 'in' has {} elements, but 'out' {}: pass buffers of "
                           "equal length{}",
                           who.rank, who.size, in.count, out.count, else_use));
}

void require_chunk(const Call& call, Caller who, const ConstBuffer& chunk, std::size_t all) {
  const std::size_t wanted = chunk_count(all, who.size, who.rank);
  if (chunk.count == wanted) return;
  reject(call,
         fmt::format("rank {} of {}: its chunk of {} elements has {}, but its buffer {}: pass "
                     "chunk_count({}, {}, {}), or use {}_v for chunks of any length",
                     who.rank, who.size, all, wanted, chunk.count, all, who.size, who.rank,
                     to_string(call.collective)));
}

void require_sum(const Call& call, Caller who, std::string_view name, std::size_t sum,
                 std::size_t given) {
  if (sum == given) return;
  reject(call, fmt::format("rank {} of {}: the sum of '{}' is {} elements, but the buffer for all "
                           "ranks has {}: pass a buffer of that sum",
                           who.rank, who.size, name, sum, given));
}

void require_own(const Call& call, Caller who, Counts counts, std::size_t given) {
  const std::size_t wanted = counts[static_cast<std::size_t>(who.rank)];
  if (given == wanted) return;
  reject(call, fmt::format("rank {} of {}: its entry in 'counts' is {} elements, but the buffer of "
                           "its share has {}: pass a buffer of that length",
                           who.rank, who.size, wanted, given));
}

void require_element(const Call& call, const Elements& of) {
  if (of.reducer != nullptr) {
    require_reducer(call);
    const std::size_t given = of.type == kUserElement ? of.user_bytes : element_bytes(of.type);
    if (given == of.reducer->element_bytes) return;
    reject(call, fmt::format("the reducer is for elements of {} bytes, but the buffer holds {}",
                             of.reducer->element_bytes, name_of_type(of.type, of.user_bytes)));
  }
  if (of.type == kUserElement) {
    reject(call, fmt::format("elements of {} bytes have no ElementType: {}", of.user_bytes,
                             is_reduction(call.collective)
                                 ? "pass a UserReduceOp for them"
                                 : "pass their bytes, as std::as_writable_bytes(span) gives them"));
  }
  if (element_bytes(of.type) == 0) {
    reject(call, fmt::format("{} is not an element type", static_cast<int>(of.type)));
  }
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

}  // namespace kolo::inline v0::checked_calls
