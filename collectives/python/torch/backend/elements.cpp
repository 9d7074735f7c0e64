#include "collectives/python/torch/backend/elements.h"

#include <algorithm>
#include <optional>

namespace kolo_torch {
namespace {

std::optional<kolo_type> type_of(at::ScalarType type) {
  switch (type) {
    case at::ScalarType::Float:
      return KOLO_FLOAT32;
    case at::ScalarType::Double:
      return KOLO_FLOAT64;
    case at::ScalarType::BFloat16:
      return KOLO_BFLOAT16;
    case at::ScalarType::Half:
      return KOLO_FLOAT16;
    case at::ScalarType::Int:
      return KOLO_INT32;
    case at::ScalarType::Long:
      return KOLO_INT64;
    case at::ScalarType::Char:
      return KOLO_INT8;
    case at::ScalarType::Short:
      return KOLO_INT16;
    case at::ScalarType::Byte:
      return KOLO_UINT8;
    case at::ScalarType::UInt16:
      return KOLO_UINT16;
    case at::ScalarType::UInt32:
      return KOLO_UINT32;
    case at::ScalarType::UInt64:
      return KOLO_UINT64;
    case at::ScalarType::Float8_e4m3fn:
      return KOLO_FLOAT8_E4M3;
    case at::ScalarType::Float8_e5m2:
      return KOLO_FLOAT8_E5M2;
    default:
      return std::nullopt;
  }
}

kolo_op op_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return KOLO_SUM;
    case c10d::ReduceOp::AVG:
      return KOLO_AVERAGE;
    case c10d::ReduceOp::PRODUCT:
      return KOLO_PRODUCT;
    case c10d::ReduceOp::MIN:
      return KOLO_MIN;
    case c10d::ReduceOp::MAX:
      return KOLO_MAX;
    case c10d::ReduceOp::BAND:
      return KOLO_BIT_AND;
    case c10d::ReduceOp::BOR:
      return KOLO_BIT_OR;
    case c10d::ReduceOp::BXOR:
      return KOLO_BIT_XOR;
    case c10d::ReduceOp::PREMUL_SUM:
      return KOLO_SCALED_SUM;
    default:
      TORCH_CHECK(false, "unknown ReduceOp ", static_cast<int>(op));
  }
}

// Reductions of truth values, so that each result is 0 or 1.
kolo_op op_of_bool(std::string_view operation, kolo_op op) {
  switch (op) {
    case KOLO_SUM:
    case KOLO_MAX:
    case KOLO_BIT_OR:
      return KOLO_BIT_OR;
    case KOLO_PRODUCT:
    case KOLO_MIN:
    case KOLO_BIT_AND:
      return KOLO_BIT_AND;
    case KOLO_BIT_XOR:
      return KOLO_BIT_XOR;
    default:
      TORCH_CHECK(false, operation, ": AVG and PREMUL_SUM do not exist for bool tensors");
  }
}

double scale_of(const c10d::ReduceOp& op) {
  // The name that all versions of torch know.
  const auto* factor = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(factor != nullptr, "PREMUL_SUM without a factor");
  return factor->tensor_factor.defined() ? factor->tensor_factor.item<double>()
                                         : factor->double_factor;
}

bool is_one_piece(const std::vector<at::Tensor>& tensors) {
  const auto* next = static_cast<const char*>(tensors.front().const_data_ptr());
  return std::ranges::all_of(tensors, [&](const at::Tensor& tensor) {
    const bool follows = tensor.is_contiguous() && tensor.const_data_ptr() == next &&
                         tensor.is_alias_of(tensors.front());
    next += tensor.nbytes();
    return follows;
  });
}

std::int64_t elements_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += tensor.numel();
  return sum;
}

at::Tensor view_of(const std::vector<at::Tensor>& piece) {
  const at::Tensor& first = piece.front();
  return first.as_strided({elements_of(piece)}, {1}, first.storage_offset());
}

}  // namespace

MovedType::MovedType(const at::Tensor& tensor) {
  const auto known = type_of(tensor.scalar_type());
  type = known.value_or(KOLO_UINT8);
  if (!known) units = tensor.element_size();
}

Reduced::Reduced(std::string_view operation, const at::Tensor& tensor, const c10d::ReduceOp& given)
    : op(op_of(given.op_)) {
  const at::ScalarType scalar = tensor.scalar_type();
  if (scalar == at::ScalarType::Bool) {
    type = KOLO_UINT8;
    op = op_of_bool(operation, op);
    return;
  }
  const auto known = type_of(scalar);
  TORCH_CHECK(known, operation, ": kolo cannot reduce elements of type ", c10::toString(scalar));
  type = *known;
  const bool is_integral = at::isIntegralType(scalar, false);
  const char* name = op == KOLO_BIT_AND ? "BAND" : op == KOLO_BIT_OR ? "BOR" : "BXOR";
  TORCH_CHECK(is_integral || op < KOLO_BIT_AND || op > KOLO_BIT_XOR, "Cannot use ReduceOp.", name,
              " with non-integral dtype");
  if (op == KOLO_SCALED_SUM) {
    TORCH_CHECK(!is_integral, operation, ": PREMUL_SUM needs a type of floats");
    scale = scale_of(given);
  }
}

void require_cpu(std::string_view operation, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), operation, ": a tensor is undefined");
  TORCH_CHECK(tensor.device().is_cpu(), operation, ": the tensor is on ", tensor.device(),
              ", and the kolo backend takes tensors of the CPU. Copy it with .cpu(), or use "
              "init_process_group(\"cpu:kolo,cuda:nccl\")");
  TORCH_CHECK(tensor.layout() == at::kStrided, operation, ": a tensor of layout ", tensor.layout(),
              " is not supported, only strided (dense) ones");
}

void require_cpu(std::string_view operation, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(!tensors.empty(), operation, ": requires non-empty tensor list");
  for (const at::Tensor& tensor : tensors) {
    require_cpu(operation, tensor);
    TORCH_CHECK(tensor.scalar_type() == tensors.front().scalar_type(), operation,
                ": invalid tensor type: expected ", tensors.front().scalar_type(), ", got ",
                tensor.scalar_type());
  }
}

Results::Results(const at::Tensor& tensor, bool has_input) : memory_(tensor) {
  if (tensor.is_contiguous()) return;
  targets_ = {tensor};
  memory_ = has_input ? tensor.contiguous() : at::empty(tensor.sizes(), tensor.options());
}

Results::Results(const std::vector<at::Tensor>& tensors) {
  if (is_one_piece(tensors)) {
    memory_ = view_of(tensors);
    return;
  }
  targets_ = tensors;
  memory_ = at::empty({elements_of(tensors)}, tensors.front().options());
}

void Results::store() const {
  std::int64_t at = 0;
  for (const at::Tensor& target : targets_) {
    const auto piece = memory_.view({-1}).narrow(0, at, target.numel());
    target.copy_(piece.view(target.sizes()));
    at += target.numel();
  }
}

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  if (is_one_piece(tensors)) return view_of(tensors);
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  return at::cat(flat);
}

std::vector<std::size_t> counts_of(const std::vector<at::Tensor>& tensors, std::size_t units) {
  std::vector<std::size_t> counts;
  counts.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors)
    counts.push_back(static_cast<std::size_t>(tensor.numel()) * units);
  return counts;
}

bool are_equal(const std::vector<std::size_t>& counts) {
  return std::ranges::all_of(counts, [&](std::size_t count) { return count == counts.front(); });
}

}  // namespace kolo_torch
