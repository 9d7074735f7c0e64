// Reductions, broadcast and barrier of the backend "kolo".
#include "collectives/python/torch/backend/calls.h"

namespace kolo_torch {
namespace {

using c10d::OpType;

std::size_t count_of(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

}  // namespace

WorkHandle KoloBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  if (tensors.size() == 1 && tensors.front().is_sparse()) return allreduce_sparse(tensors, opts);
  const at::Tensor& tensor = single("all_reduce", tensors);
  const Reduced reduced("all_reduce", tensor, opts.reduceOp);
  const Results results(tensor, true);
  const auto body = [&](Issuer& issue) {
    if (reduced.op == KOLO_SCALED_SUM) issue.set_scale(reduced.scale);
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_all_reduce(issue.communicator(), results.data(), results.data(), count_of(tensor),
                             reduced.type, reduced.op, call, work);
    });
  };
  return run(call(OpType::ALLREDUCE, "kolo:all_reduce", opts), tensors, tensors, {results.memory()},
             body, storing(results));
}

WorkHandle KoloBackend::allreduce_coalesced(Tensors& tensors,
                                            const c10d::AllreduceCoalescedOptions& opts) {
  require_cpu("all_reduce_coalesced", tensors);
  const Reduced reduced("all_reduce_coalesced", tensors.front(), opts.reduceOp);
  std::vector<Results> results;
  Tensors kept;
  for (const at::Tensor& tensor : tensors) {
    results.emplace_back(tensor, true);
    kept.push_back(results.back().memory());
  }
  const auto body = [&](Issuer& issue) {
    if (reduced.op == KOLO_SCALED_SUM) issue.set_scale(reduced.scale);
    for (const Results& one : results) {
      issue([&](const kolo_call* call, kolo_work** work) {
        return kolo_all_reduce(issue.communicator(), one.data(), one.data(), count_of(one.memory()),
                               reduced.type, reduced.op, call, work);
      });
    }
  };
  return run(call(OpType::ALLREDUCE_COALESCED, "kolo:all_reduce", opts), tensors, tensors, kept,
             body, storing(results));
}

// Sum of sparse tensors: all ranks gather the indices and values of all. Blocks, in three steps.
WorkHandle KoloBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  TORCH_CHECK(tensors.size() == 1 && tensors.front().layout() == at::kSparse,
              "all_reduce: requires a single sparse tensor (COO) in a list");
  TORCH_CHECK(tensors.front().device().is_cpu(), "all_reduce: the tensor is on ",
              tensors.front().device(), ", and the kolo backend takes tensors of the CPU");
  TORCH_CHECK(opts.reduceOp == c10d::ReduceOp::SUM,
              "all_reduce: sparse tensors only support ReduceOp.SUM");
  const at::Tensor mine = tensors.front().coalesce();
  const at::Tensor indices = mine.indices().t().contiguous();
  const at::Tensor values = mine.values().contiguous();
  const std::int64_t one = mine._nnz();
  std::vector<std::int64_t> entries(static_cast<std::size_t>(size_));
  auto what = call(OpType::_ALLREDUCE_SPARSE, "kolo:sparse_all_reduce", opts);
  what.is_async = false;
  const MovedType type(values);
  at::Tensor sum;
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_all_gather(issue.communicator(), &one, entries.data(), entries.size(), KOLO_INT64,
                             call, work);
    });
    std::int64_t total = 0;
    for (const std::int64_t count : entries) total += count;
    const auto gather = [&](const at::Tensor& share, kolo_type kind, std::size_t units) {
      auto sizes = share.sizes().vec();
      sizes[0] = total;
      const at::Tensor all = at::empty(sizes, share.options());
      const std::size_t width = total == 0 ? 0 : count_of(all) / static_cast<std::size_t>(total);
      std::vector<std::size_t> counts;
      for (const std::int64_t count : entries)
        counts.push_back(static_cast<std::size_t>(count) * width * units);
      issue([&](const kolo_call* call, kolo_work** work) {
        return kolo_all_gather_v(issue.communicator(), share.const_data_ptr(),
                                 all.mutable_data_ptr(), counts.data(), kind, call, work);
      });
      return all;
    };
    const at::Tensor all_indices = gather(indices, KOLO_INT64, 1);
    const at::Tensor all_values = gather(values, type.type, type.units);
    sum =
        at::sparse_coo_tensor(all_indices.t(), all_values, mine.sizes(), mine.options()).coalesce();
  };
  return run(what, tensors, tensors, {}, body, [&] { tensors.front().copy_(sum); });
}

WorkHandle KoloBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  const at::Tensor& tensor = single("reduce", tensors);
  require_root("reduce", opts.rootRank);
  const Reduced reduced("reduce", tensor, opts.reduceOp);
  const Results results(tensor, true);
  const auto body = [&](Issuer& issue) {
    if (reduced.op == KOLO_SCALED_SUM) issue.set_scale(reduced.scale);
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_reduce(issue.communicator(), results.data(), results.data(), count_of(tensor),
                         reduced.type, reduced.op, static_cast<int>(opts.rootRank), call, work);
    });
  };
  auto after = rank_ == opts.rootRank ? storing(results) : std::function<void()>();
  return run(call(OpType::REDUCE, "kolo:reduce", opts), tensors, tensors, {results.memory()}, body,
             std::move(after));
}

WorkHandle KoloBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  const at::Tensor& tensor = single("broadcast", tensors);
  require_root("broadcast", opts.rootRank);
  const MovedType type(tensor);
  const Results results(tensor, rank_ == opts.rootRank);
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_broadcast(issue.communicator(), results.data(), type.count(tensor), type.type,
                            static_cast<int>(opts.rootRank), call, work);
    });
  };
  auto after = rank_ == opts.rootRank ? std::function<void()>() : storing(results);
  return run(call(OpType::BROADCAST, "kolo:broadcast", opts), tensors, tensors, {results.memory()},
             body, std::move(after));
}

WorkHandle KoloBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                             const c10d::ReduceScatterOptions& opts) {
  Tensors outputs{output};
  Tensors inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, opts);
}

WorkHandle KoloBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                        const c10d::ReduceScatterOptions& opts) {
  constexpr const char* kName = "reduce_scatter_tensor";
  require_cpu(kName, inputs);
  require_cpu(kName, outputs);
  TORCH_CHECK(inputs.size() == outputs.size(), kName, ": ", inputs.size(), " inputs and ",
              outputs.size(), " outputs");
  const Reduced reduced(kName, inputs.front(), opts.reduceOp);
  Tensors kept;
  std::vector<Results> results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(inputs[i].numel() == outputs[i].numel() * size_, kName,
                ": input tensor must be the same size as output size times world size: ",
                inputs[i].numel(), " elements for ", size_, " ranks of ", outputs[i].numel());
    TORCH_CHECK(inputs[i].scalar_type() == outputs[i].scalar_type(), kName,
                ": input and output have different types");
    kept.push_back(packed(inputs[i]));
    results.emplace_back(outputs[i], false);
  }
  const auto body = [&](Issuer& issue) {
    if (reduced.op == KOLO_SCALED_SUM) issue.set_scale(reduced.scale);
    for (std::size_t i = 0; i < results.size(); ++i) {
      issue([&](const kolo_call* call, kolo_work** work) {
        return kolo_reduce_scatter(issue.communicator(), kept[i].const_data_ptr(),
                                   results[i].data(), count_of(kept[i]), reduced.type, reduced.op,
                                   call, work);
      });
    }
  };
  Tensors all = kept;
  for (const Results& one : results) all.push_back(one.memory());
  const bool is_single = inputs.size() == 1;
  return run(
      call(is_single ? OpType::_REDUCE_SCATTER_BASE : kReduceScatterTensors,
           is_single ? "kolo:_reduce_scatter_base" : "kolo:reduce_scatter_tensor_coalesced", opts),
      inputs, outputs, std::move(all), body, storing(results));
}

WorkHandle KoloBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                       const c10d::ReduceScatterOptions& opts) {
  const at::Tensor& output = single("reduce_scatter", outputs);
  TORCH_CHECK(inputs.size() == 1 && inputs.front().size() == static_cast<std::size_t>(size_),
              "reduce_scatter: requires one list of ", size_, " input tensors, one for each rank");
  const Tensors& list = inputs.front();
  require_cpu("reduce_scatter", list);
  const Reduced reduced("reduce_scatter", output, opts.reduceOp);
  TORCH_CHECK(list.front().scalar_type() == output.scalar_type(),
              "reduce_scatter: inputs and output have different types");
  const auto counts = counts_of(list, 1);
  TORCH_CHECK(counts[static_cast<std::size_t>(rank_)] == count_of(output),
              "reduce_scatter: the output has ", output.numel(), " elements, and input ", rank_,
              " has ", counts[static_cast<std::size_t>(rank_)]);
  const at::Tensor all = joined(list);
  const Results results(output, false);
  const auto body = [&](Issuer& issue) {
    if (reduced.op == KOLO_SCALED_SUM) issue.set_scale(reduced.scale);
    issue([&](const kolo_call* call, kolo_work** work) {
      if (are_equal(counts)) {
        return kolo_reduce_scatter(issue.communicator(), all.const_data_ptr(), results.data(),
                                   count_of(all), reduced.type, reduced.op, call, work);
      }
      return kolo_reduce_scatter_v(issue.communicator(), all.const_data_ptr(), results.data(),
                                   counts.data(), reduced.type, reduced.op, call, work);
    });
  };
  return run(call(OpType::REDUCE_SCATTER, "kolo:reduce_scatter", opts), list, outputs,
             {all, results.memory()}, body, storing(results));
}

WorkHandle KoloBackend::barrier(const c10d::BarrierOptions& opts) {
  const auto body = [&](Issuer& issue) {
    issue([&](const kolo_call* call, kolo_work** work) {
      return kolo_barrier(issue.communicator(), call, work);
    });
  };
  return run(call(OpType::BARRIER, "kolo:barrier", opts), {}, {}, {}, body);
}

}  // namespace kolo_torch
