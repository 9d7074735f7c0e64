// All-gather, gather, scatter and all-to-all of the backend "kolo".
#include <numeric>

#include "collectives/python/torch/backend/calls.h"

namespace kolo_torch {
namespace {

using c10d::OpType;

// Tensors of which there is one for each rank.
const Tensors& one_for_each_rank(const char* operation, const std::vector<Tensors>& lists,
                                 int size) {
  TORCH_CHECK(lists.size() == 1 && lists.front().size() == static_cast<std::size_t>(size),
              operation, ": requires one list of ", size, " tensors, one for each rank");
  require_cpu(operation, lists.front());
  return lists.front();
}

void require_same(const char* operation, const at::Tensor& one, const at::Tensor& other) {
  TORCH_CHECK(one.scalar_type() == other.scalar_type() && one.numel() == other.numel(), operation,
              ": the tensors of this rank differ: ", one.numel(), " elements of ",
              one.scalar_type(), ", and ", other.numel(), " of ", other.scalar_type());
}

// Elements for each rank, of a tensor that is cut along its first dimension.
std::vector<std::size_t> cut(const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                             int size, std::size_t units) {
  const auto count = static_cast<std::size_t>(size);
  if (splits.empty()) {
    TORCH_CHECK(tensor.size(0) % size == 0,
                "all_to_all_single: Tensor's dim 0 does not divide equally across group size");
    return std::vector<std::size_t>(count,
                                    static_cast<std::size_t>(tensor.numel()) / count * units);
  }
  TORCH_CHECK(splits.size() == count,
              "all_to_all_single: Number of tensor splits not equal to group size");
  TORCH_CHECK(std::accumulate(splits.begin(), splits.end(), std::int64_t{0}) == tensor.size(0),
              "all_to_all_single: Split sizes doesn't match total dim 0 size");
  const std::int64_t row = tensor.size(0) == 0 ? 1 : tensor.numel() / tensor.size(0);
  std::vector<std::size_t> counts;
  for (const std::int64_t split : splits)
    counts.push_back(static_cast<std::size_t>(split * row) * units);
  return counts;
}

}  // namespace

WorkHandle KoloBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& opts) {
  const at::Tensor& input = single("all_gather", inputs);
  const Tensors& list = one_for_each_rank("all_gather", outputs, size_);
  require_same("all_gather", input, list[static_cast<std::size_t>(rank_)]);
  const MovedType type(input);
  const auto counts = counts_of(list, type.units);
  const at::Tensor share = packed(input);
  const Results results(list);
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      const void* from = share.const_data_ptr();
      if (are_equal(counts)) {
        return kolo_all_gather(issue.communicator(), from, results.data(),
                               type.count(results.memory()), type.type, call, work);
      }
      return kolo_all_gather_v(issue.communicator(), from, results.data(), counts.data(), type.type,
                               call, work);
    });
  };
  return run(call(OpType::ALLGATHER, "kolo:all_gather", opts), inputs, list,
             {share, results.memory()}, body, storing(results));
}

WorkHandle KoloBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                        const c10d::AllgatherOptions& opts) {
  Tensors outputs{output};
  Tensors inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, opts);
}

WorkHandle KoloBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& opts) {
  constexpr const char* kName = "all_gather_into_tensor";
  require_cpu(kName, inputs);
  require_cpu(kName, outputs);
  TORCH_CHECK(inputs.size() == outputs.size(), kName, ": ", inputs.size(), " inputs and ",
              outputs.size(), " outputs");
  Tensors kept;
  std::vector<Results> results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(outputs[i].numel() == inputs[i].numel() * size_, kName,
                ": output tensor size must be equal to world_size times input tensor size: ",
                outputs[i].numel(), " elements for ", size_, " ranks of ", inputs[i].numel());
    TORCH_CHECK(inputs[i].scalar_type() == outputs[i].scalar_type(), kName,
                ": input and output have different types");
    kept.push_back(packed(inputs[i]));
    results.emplace_back(outputs[i], false);
  }
  const MovedType type(inputs.front());
  const auto body = [&](Issuer& issue) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      issue([&](const kolo_call* call, kolo_work** work) {
        return kolo_all_gather(issue.communicator(), kept[i].const_data_ptr(), results[i].data(),
                               type.count(results[i].memory()), type.type, call, work);
      });
    }
  };
  Tensors all = kept;
  for (const Results& one : results) all.push_back(one.memory());
  const bool is_single = inputs.size() == 1;
  return run(
      call(is_single ? OpType::_ALLGATHER_BASE : kAllGatherTensors,
           is_single ? "kolo:_all_gather_base" : "kolo:all_gather_into_tensor_coalesced", opts),
      inputs, outputs, std::move(all), body, storing(results));
}

// outputs[r][i]: the i-th tensor of rank r.
WorkHandle KoloBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& opts) {
  constexpr const char* kName = "all_gather_coalesced";
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(size_), kName,
              ": output lists should be equal to world size");
  require_cpu(kName, inputs);
  Tensors kept;
  Tensors targets;
  std::vector<Results> results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_ranks;
    for (const Tensors& list : outputs) {
      TORCH_CHECK(list.size() == inputs.size(), kName, ": invalid output size: (expected length ",
                  inputs.size(), ", got ", list.size(), ")");
      TORCH_CHECK(list[i].sizes() == inputs[i].sizes(), kName, ": invalid size of output tensor ",
                  i, " (expected length ", inputs[i].sizes(), ", got ", list[i].sizes(), ")");
      TORCH_CHECK(list[i].scalar_type() == inputs[i].scalar_type(), kName,
                  ": invalid tensor type at index ", i);
      of_ranks.push_back(list[i]);
      targets.push_back(list[i]);
    }
    kept.push_back(packed(inputs[i]));
    results.emplace_back(of_ranks);
  }
  const auto body = [&](Issuer& issue) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const MovedType type(inputs[i]);
      issue([&](const kolo_call* call, kolo_work** work) {
        return kolo_all_gather(issue.communicator(), kept[i].const_data_ptr(), results[i].data(),
                               type.count(results[i].memory()), type.type, call, work);
      });
    }
  };
  Tensors all = kept;
  for (const Results& one : results) all.push_back(one.memory());
  return run(call(OpType::ALLGATHER_COALESCED, "kolo:all_gather", opts), inputs, targets,
             std::move(all), body, storing(results));
}

WorkHandle KoloBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                               const c10d::GatherOptions& opts) {
  const at::Tensor& input = single("gather", inputs);
  require_root("gather", opts.rootRank);
  const bool is_root = rank_ == opts.rootRank;
  TORCH_CHECK(is_root || outputs.empty(), "gather: requires empty output on non-root");
  const MovedType type(input);
  const at::Tensor share = packed(input);
  Tensors list;
  std::vector<std::size_t> counts;
  std::vector<Results> results;
  if (is_root) {
    list = one_for_each_rank("gather", outputs, size_);
    require_same("gather", input, list[static_cast<std::size_t>(rank_)]);
    counts = counts_of(list, type.units);
    results.emplace_back(list);
  }
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_gather_v(issue.communicator(), share.const_data_ptr(), type.count(share),
                           is_root ? results.front().data() : nullptr,
                           is_root ? counts.data() : nullptr, type.type,
                           static_cast<int>(opts.rootRank), call, work);
    });
  };
  Tensors kept{share};
  if (is_root) kept.push_back(results.front().memory());
  return run(call(OpType::GATHER, "kolo:gather", opts), inputs, list, std::move(kept), body,
             storing(results));
}

WorkHandle KoloBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                const c10d::ScatterOptions& opts) {
  const at::Tensor& output = single("scatter", outputs);
  require_root("scatter", opts.rootRank);
  const bool is_root = rank_ == opts.rootRank;
  TORCH_CHECK(is_root || inputs.empty(), "scatter: requires empty input on non-root");
  const MovedType type(output);
  const Results results(output, false);
  Tensors list;
  std::vector<std::size_t> counts;
  at::Tensor all;
  if (is_root) {
    list = one_for_each_rank("scatter", inputs, size_);
    require_same("scatter", output, list[static_cast<std::size_t>(rank_)]);
    counts = counts_of(list, type.units);
    all = joined(list);
  }
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_scatter_v(issue.communicator(), is_root ? all.const_data_ptr() : nullptr,
                            is_root ? counts.data() : nullptr, results.data(), type.count(output),
                            type.type, static_cast<int>(opts.rootRank), call, work);
    });
  };
  Tensors kept{results.memory()};
  if (is_root) kept.push_back(all);
  return run(call(OpType::SCATTER, "kolo:scatter", opts), list, outputs, std::move(kept), body,
             storing(results));
}

WorkHandle KoloBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                 const c10d::AllToAllOptions& opts) {
  require_cpu("all_to_all", inputs);
  require_cpu("all_to_all", outputs);
  const auto size = static_cast<std::size_t>(size_);
  TORCH_CHECK(inputs.size() == size && outputs.size() == size, "all_to_all: requires ", size_,
              " input and output tensors, one for each rank");
  const MovedType type(inputs.front());
  const auto gives = counts_of(inputs, type.units);
  const auto gets = counts_of(outputs, type.units);
  const at::Tensor all = joined(inputs);
  const Results results(outputs);
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_all_to_all_v(issue.communicator(), all.const_data_ptr(), gives.data(),
                               results.data(), gets.data(), type.type, call, work);
    });
  };
  return run(call(OpType::ALLTOALL, "kolo:all_to_all", opts), inputs, outputs,
             {all, results.memory()}, body, storing(results));
}

WorkHandle KoloBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                      std::vector<std::int64_t>& output_splits,
                                      std::vector<std::int64_t>& input_splits,
                                      const c10d::AllToAllOptions& opts) {
  require_cpu("all_to_all_single", {output, input});
  const MovedType type(input);
  const auto gives = cut(input, input_splits, size_, type.units);
  const auto gets = cut(output, output_splits, size_, type.units);
  const bool is_equal = input_splits.empty() && output_splits.empty();
  const at::Tensor all = packed(input);
  const Results results(output, false);
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      if (is_equal) {
        return kolo_all_to_all(issue.communicator(), all.const_data_ptr(), results.data(),
                               type.count(all), type.type, call, work);
      }
      return kolo_all_to_all_v(issue.communicator(), all.const_data_ptr(), gives.data(),
                               results.data(), gets.data(), type.type, call, work);
    });
  };
  return run(call(OpType::ALLTOALL_BASE, "kolo:all_to_all", opts), {input}, {output},
             {all, results.memory()}, body, storing(results));
}

}  // namespace kolo_torch
