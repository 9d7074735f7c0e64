// Collectives with a count per rank.
#include <nanobind/stl/vector.h>

#include "collectives/python/src/module.h"
#include "collectives/python/src/reductions.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedWorld = std::shared_ptr<World>;
using CountList = std::vector<std::size_t>;

nb::any reduce_scatter_v(const SharedWorld& self, nb::handle data, nb::handle out,
                         const CountList& counts, nb::handle op, const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  const Reduction reduction = reduction_of(op, *flight);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.reduce_scatter_v_async(flight->input(), flight->output(), counts, reduction,
                                        options);
  });
}

nb::any all_gather_v(const SharedWorld& self, nb::handle data, nb::handle out,
                     const CountList& counts, const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.all_gather_v_async(flight->input(), flight->output(), counts, options);
  });
}

nb::any gather_v(const SharedWorld& self, nb::handle data, nb::handle out, const CountList& counts,
                 int root, const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.gather_v_async(flight->input(), flight->output(), counts, root, options);
  });
}

nb::any scatter_v(const SharedWorld& self, nb::handle data, nb::handle out, const CountList& counts,
                  int root, const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.scatter_v_async(flight->input(), flight->output(), counts, root, options);
  });
}

nb::any all_to_all_v(const SharedWorld& self, nb::handle data, const CountList& gives,
                     nb::handle out, const CountList& gets, const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.all_to_all_v_async(flight->input(), gives, flight->output(), gets, options);
  });
}

}  // namespace

void bind_variable_counts(WorldClass& world) {
  const auto call = nb::arg("call").none();
  world
      .def("reduce_scatter_v", reduce_scatter_v, "data"_a, "out"_a, "counts"_a, "op"_a, call,
           "waits"_a)
      .def("all_gather_v", all_gather_v, "data"_a, "out"_a, "counts"_a, call, "waits"_a)
      .def("gather_v", gather_v, "data"_a, "out"_a.none(), "counts"_a, "root"_a, call, "waits"_a)
      .def("scatter_v", scatter_v, "data"_a.none(), "out"_a, "counts"_a, "root"_a, call, "waits"_a)
      .def("all_to_all_v", all_to_all_v, "data"_a, "gives"_a, "out"_a, "gets"_a, call, "waits"_a);
}

}  // namespace kolo::python
