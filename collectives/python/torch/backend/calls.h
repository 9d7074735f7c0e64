// How a call of torch.distributed becomes a call of KoloBackend::run(), for collectives.cpp and
// shares.cpp.
#pragma once

#include "collectives/python/torch/backend/backend.h"

namespace kolo_torch {

// Older versions of torch lack the field in some options: the call is then asynchronous.
template <typename Options>
bool is_async(const Options& opts) {
  if constexpr (requires { opts.asyncOp; }) {
    return opts.asyncOp;
  } else {
    return true;
  }
}

#ifdef KOLO_TORCH_HAS_COALESCED_TYPES
inline constexpr auto kReduceScatterTensors = c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
inline constexpr auto kAllGatherTensors = c10d::OpType::ALLGATHER_INTO_TENSOR_COALESCED;
#else
inline constexpr auto kReduceScatterTensors = c10d::OpType::COALESCED;
inline constexpr auto kAllGatherTensors = c10d::OpType::COALESCED;
#endif

template <typename Given>
KoloBackend::Call KoloBackend::call(c10d::OpType type, const char* title, const Given& opts) const {
  const bool is_set = opts.timeout.count() >= 0;
  return {{type, title}, is_set ? opts.timeout : Milliseconds(timeout_ms_), is_async(opts)};
}

// Stores results that went through a buffer; empty if they did not.
inline std::function<void()> storing(const Results& results) {
  if (!results.is_copied()) return {};
  return [results] { results.store(); };
}
inline std::function<void()> storing(const std::vector<Results>& results) {
  return [results] {
    for (const Results& one : results) one.store();
  };
}

inline const at::Tensor& single(const char* operation, const Tensors& tensors) {
  TORCH_CHECK(tensors.size() == 1, operation, ": requires a single-element tensor list, got ",
              tensors.size());
  require_cpu(operation, tensors.front());
  return tensors.front();
}

}  // namespace kolo_torch
