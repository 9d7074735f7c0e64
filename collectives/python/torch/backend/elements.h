// Element types, reductions and memory of tensors, as kolo takes them.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <string_view>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "collectives/c/kolo.h"

namespace kolo_torch {

// Type of elements that are only moved. Types that kolo does not know travel as bytes.
struct MovedType {
  explicit MovedType(const at::Tensor& tensor);

  kolo_type type;
  std::size_t units = 1;  // elements of `type` in an element of the tensor

  std::size_t count(const at::Tensor& tensor) const {
    return static_cast<std::size_t>(tensor.numel()) * units;
  }
};

// Type and operation of a reduction. Throws RuntimeError for a type that kolo cannot reduce.
struct Reduced {
  Reduced(std::string_view operation, const at::Tensor& tensor, const c10d::ReduceOp& op);

  kolo_type type;
  kolo_op op;
  double scale = 0;  // for KOLO_SCALED_SUM
};

// Throws RuntimeError unless the tensor is dense memory of the CPU.
void require_cpu(std::string_view operation, const at::Tensor& tensor);
// The same for each tensor; they must also have the type of the first.
void require_cpu(std::string_view operation, const std::vector<at::Tensor>& tensors);

// Contiguous elements of a tensor that is only read: a copy if it is strided.
inline at::Tensor packed(const at::Tensor& tensor) { return tensor.contiguous(); }

// Contiguous memory for results that belong into tensors. If the tensors are not one piece of
// memory, it is a buffer that store() copies into them.
class Results {
 public:
  // `has_input`: the operation reads the elements, too.
  Results(const at::Tensor& tensor, bool has_input);
  // Room for several tensors one after another.
  explicit Results(const std::vector<at::Tensor>& tensors);

  void* data() const { return memory_.mutable_data_ptr(); }
  const at::Tensor& memory() const { return memory_; }
  bool is_copied() const { return !targets_.empty(); }
  void store() const;

 private:
  at::Tensor memory_;
  std::vector<at::Tensor> targets_;
};

// The elements of several tensors one after another. Not copied if they are that already.
at::Tensor joined(const std::vector<at::Tensor>& tensors);

std::vector<std::size_t> counts_of(const std::vector<at::Tensor>& tensors, std::size_t units);
bool are_equal(const std::vector<std::size_t>& counts);

}  // namespace kolo_torch
