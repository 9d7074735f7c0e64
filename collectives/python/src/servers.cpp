// Parameter servers: push and pull by collectives.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "collectives/python/src/module.h"
#include "collectives/python/src/reductions.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedWorld = std::shared_ptr<World>;

// `type`: of the elements that the function gets.
ServerUpdate update_of(const nb::object& given, ElementType type) {
  if (given.is_none()) return {};
  return [function = make_function(given), type](std::size_t first, std::span<std::byte> sums) {
    call_python([&] {
      (*function)(first, memoryview_of(sums.data(), sums.size() / element_bytes(type), type, true));
    });
  };
}

nb::any push_pull(const SharedWorld& self, nb::handle data, nb::handle out, nb::handle op,
                  const ServerPlan& plan, const nb::object& update, const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  const Reduction reduction = reduction_of(op, *flight);
  const ServerUpdate updates = update_of(update, flight->output().type);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.push_pull_async(flight->input(), flight->output(), reduction, plan, updates,
                                 options);
  });
}

nb::any push(const SharedWorld& self, nb::handle data, nb::handle share, nb::handle op,
             const ServerPlan& plan, const nb::object& update, const Call* call, bool waits) {
  auto flight = make_flight(data, share);
  const Reduction reduction = reduction_of(op, *flight);
  const ServerUpdate updates = update_of(update, flight->input().type);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.push_async(flight->input(), flight->output(), reduction, plan, updates, options);
  });
}

nb::any pull(const SharedWorld& self, nb::handle share, nb::handle out, const ServerPlan& plan,
             const Call* call, bool waits) {
  auto flight = make_flight(share, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.pull_async(flight->input(), flight->output(), plan, options);
  });
}

constexpr const char* kPlanText =
    R"(The servers of push_pull, push and pull; the same on every rank.

servers: dedicated ranks, which do not work. All other ranks are workers.
everywhere: the workers are servers, too.
parts: how many parts of the data each server holds, at least 1; empty: one each)";

}  // namespace

void bind_servers(nb::module_& module, WorldClass& world) {
  nb::class_<ServerPlan>(module, "ServerPlan", kPlanText)
      .def(
          "__init__",
          [](ServerPlan* self, std::vector<int> servers, bool everywhere, std::vector<int> parts) {
            new (self) ServerPlan{everywhere, std::move(servers), std::move(parts)};
          },
          "servers"_a = std::vector<int>{}, nb::kw_only(), "everywhere"_a = false,
          "parts"_a = std::vector<int>{})
      .def_static("balanced", balanced_plan, "servers"_a, "size"_a,
                  "A plan in which all `size` ranks send and receive the same.")
      .def(
          "share",
          [](const ServerPlan& self, int rank, int size, std::size_t count) {
            const ServerShare share = share_of(self, rank, size, count);
            return std::pair(share.begin, share.count);
          },
          "rank"_a, "size"_a, "count"_a,
          "First element and number of elements of `count` that `rank` holds.");
  const auto call = nb::arg("call").none();
  world
      .def("push_pull", push_pull, "data"_a, "out"_a, "op"_a, "plan"_a, "update"_a.none(), call,
           "waits"_a)
      .def("push", push, "data"_a, "share"_a.none(), "op"_a, "plan"_a, "update"_a.none(), call,
           "waits"_a)
      .def("pull", pull, "share"_a.none(), "out"_a, "plan"_a, call, "waits"_a);
}

}  // namespace kolo::python
