// Checks of a call's arguments: each throws std::invalid_argument that names the collective, the
// argument, what is wrong with it and what to pass instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "collectives/buffer.h"
#include "collectives/engine/checked_call.h"

namespace kolo::inline v0::checked_calls {

// A buffer under the name that errors give it.
struct Named {
  std::string_view name;
  const void* data = nullptr;
  std::size_t count = 0;
};

// What the buffers of a call hold, and the rest that each call has.
struct Elements {
  Elements(const ConstBuffer& buffer, const CallOptions& call_options)
      : type(buffer.type), user_bytes(buffer.user_bytes), options(call_options) {}
  Elements(const ConstBuffer& buffer, Reduction op, const CallOptions& call_options)
      : Elements(buffer, call_options) {
    reducer = op.user();
  }

  ElementType type;
  std::size_t user_bytes;
  const CallOptions& options;
  const UserReduceOp* reducer = nullptr;
};

[[noreturn]] void reject(const Call& call, const std::string& what);

// The elements and their operation.
void require_element(const Call& call, const Elements& of);
void require_count(const Call& call, std::size_t count);
void require_scale(const Call& call);
void take_op(Call& call, ReduceOp op);
void require_root(const Call& call, Caller who);

// One buffer, and both: present where elements are expected, aligned, the same memory or separate.
void require_memory(const Call& call, const Named& buffer);
void require_alignment(const Call& call, const Named& buffer);
void require_apart(const Call& call, const Extents& extents, const Named& in, const Named& out);

// Types and lengths that are stated twice agree. A buffer of nothing has no type.
void require_same_type(const Call& call, Caller who, const ConstBuffer& in, const ConstBuffer& out);
// `else_use` ends the error: another call that takes buffers of different lengths.
void require_same_count(const Call& call, Caller who, const ConstBuffer& in, const Buffer& out,
                        std::string_view else_use = {});
// `chunk` is as long as this rank's chunk of `all` elements.
void require_chunk(const Call& call, Caller who, const ConstBuffer& chunk, std::size_t all);

// One count per rank, in the list called `name`.
std::size_t sum(Counts counts);
void require_counts(const Call& call, Caller who, std::string_view name, Counts counts);
void require_sum(const Call& call, Caller who, std::string_view name, std::size_t sum,
                 std::size_t given);
void require_own(const Call& call, Caller who, Counts counts, std::size_t given);

}  // namespace kolo::inline v0::checked_calls
