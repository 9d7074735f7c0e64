// Collectives with equal shares.
#include "collectives/python/src/module.h"
#include "collectives/python/src/reductions.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedWorld = std::shared_ptr<World>;

nb::any all_reduce(const SharedWorld& self, nb::handle data, nb::handle out, nb::handle op,
                   const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  const Reduction reduction = reduction_of(op, *flight);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.all_reduce_async(flight->input(), flight->output(), reduction, options);
  });
}

nb::any reduce_scatter(const SharedWorld& self, nb::handle data, nb::handle out, nb::handle op,
                       const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  const Reduction reduction = reduction_of(op, *flight);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.reduce_scatter_async(flight->input(), flight->output(), reduction, options);
  });
}

nb::any all_gather(const SharedWorld& self, nb::handle data, nb::handle out, const Call* call,
                   bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.all_gather_async(flight->input(), flight->output(), options);
  });
}

nb::any all_to_all(const SharedWorld& self, nb::handle data, nb::handle out, const Call* call,
                   bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.all_to_all_async(flight->input(), flight->output(), options);
  });
}

nb::any broadcast(const SharedWorld& self, nb::handle data, int root, const Call* call,
                  bool waits) {
  // The root may give an array that is read-only.
  const bool reads = root == self->held()->rank();
  auto flight = std::make_shared<Flight>();
  flight->out = Array(data, reads ? Access::kRead : Access::kWrite, "the array");
  flight->result = nb::borrow(data);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.broadcast_async(flight->output(), root, options);
  });
}

nb::any reduce(const SharedWorld& self, nb::handle data, nb::handle out, int root, nb::handle op,
               const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  if (out.is_none()) flight->out = Array::without_memory(flight->in);
  const Reduction reduction = reduction_of(op, *flight);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.reduce_async(flight->input(), flight->output(), root, reduction, options);
  });
}

nb::any gather(const SharedWorld& self, nb::handle data, nb::handle out, int root, const Call* call,
               bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.gather_async(flight->input(), flight->output(), root, options);
  });
}

nb::any scatter(const SharedWorld& self, nb::handle data, nb::handle out, int root,
                const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.scatter_async(flight->input(), flight->output(), root, options);
  });
}

nb::any scan(const SharedWorld& self, nb::handle data, nb::handle out, nb::handle op,
             const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  const Reduction reduction = reduction_of(op, *flight);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.scan_async(flight->input(), flight->output(), reduction, options);
  });
}

nb::any exclusive_scan(const SharedWorld& self, nb::handle data, nb::handle out, nb::handle op,
                       const Call* call, bool waits) {
  auto flight = make_flight(data, out);
  const Reduction reduction = reduction_of(op, *flight);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.exclusive_scan_async(flight->input(), flight->output(), reduction, options);
  });
}

nb::any barrier(const SharedWorld& self, const Call* call, bool waits) {
  return run(
      self, std::make_shared<Flight>(), call, waits,
      [](Communicator& world, const CallOptions& options) { return world.barrier_async(options); });
}

}  // namespace

void bind_collectives(WorldClass& world) {
  const auto call = nb::arg("call").none();
  world.def("all_reduce", all_reduce, "data"_a, "out"_a, "op"_a, call, "waits"_a)
      .def("reduce_scatter", reduce_scatter, "data"_a, "out"_a, "op"_a, call, "waits"_a)
      .def("all_gather", all_gather, "data"_a, "out"_a, call, "waits"_a)
      .def("all_to_all", all_to_all, "data"_a, "out"_a, call, "waits"_a)
      .def("broadcast", broadcast, "data"_a, "root"_a, call, "waits"_a)
      .def("reduce", reduce, "data"_a, "out"_a.none(), "root"_a, "op"_a, call, "waits"_a)
      .def("gather", gather, "data"_a, "out"_a.none(), "root"_a, call, "waits"_a)
      .def("scatter", scatter, "data"_a.none(), "out"_a, "root"_a, call, "waits"_a)
      .def("scan", scan, "data"_a, "out"_a, "op"_a, call, "waits"_a)
      .def("exclusive_scan", exclusive_scan, "data"_a, "out"_a, "op"_a, call, "waits"_a)
      .def("barrier", barrier, call, "waits"_a);
}

}  // namespace kolo::python
