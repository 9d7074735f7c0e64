// Messages between two ranks, and collectives over byte strings.
#include <nanobind/stl/vector.h>

#include "collectives/bytes.h"
#include "collectives/python/src/module.h"
#include "collectives/python/src/reductions.h"

namespace kolo::python {

namespace {

using namespace nb::literals;
using SharedWorld = std::shared_ptr<World>;

nb::any send(const SharedWorld& self, nb::handle data, int to, const Call* call, bool waits) {
  auto flight = std::make_shared<Flight>();
  flight->in = Array(data, Access::kRead, "the input");
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.send_async(flight->input(), to, options);
  });
}

nb::any receive(const SharedWorld& self, nb::handle out, int source, const Call* call, bool waits) {
  auto flight = make_flight_in_place(out);
  return run(self, flight, call, waits, [&](Communicator& world, const CallOptions& options) {
    return world.receive_async(flight->output(), source, options);
  });
}

nb::any send_receive(const SharedWorld& self, nb::handle data, int to, nb::handle out, int source,
                     const Call* call) {
  const auto communicator = self->held();
  if (to == communicator->rank() || source == communicator->rank()) {
    const Array in(data, Access::kRead, "the input");
    const Array received(out, Access::kWrite, "the output");
    const nb::gil_scoped_release no_gil;  // a copy, or refused
    communicator->send_receive(in.const_buffer(), to, received.buffer(), source,
                               call == nullptr ? CallOptions{} : call->options());
    return nb::borrow<nb::any>(out);
  }
  communicator->job_rank(to);  // refuses a wrong rank before the receive is issued
  const nb::object receiving = receive(self, out, source, call, false);
  send(self, data, to, call, true);
  wait_interruptibly(nb::cast<PythonWork&>(receiving).flight->work);
  return nb::borrow<nb::any>(out);
}

void interrupt_all(const std::shared_ptr<Communicator>& communicator) {
  communicator->abort(kInterrupted);
}

std::span<const std::byte> bytes_of(const nb::bytes& data) {
  return std::as_bytes(std::span(data.c_str(), data.size()));
}

nb::list list_of(const std::vector<Bytes>& strings) {
  nb::list made;
  for (const Bytes& one : strings) made.append(nb::bytes(one.data(), one.size()));
  return made;
}

nb::list all_gather_bytes(const SharedWorld& self, const nb::bytes& data) {
  const auto communicator = self->held();
  const auto mine = bytes_of(data);
  std::vector<Bytes> all;
  run_interruptibly([&] { all = kolo::all_gather_bytes(*communicator, mine); },
                    [&] { interrupt_all(communicator); });
  return list_of(all);
}

nb::list gather_bytes(const SharedWorld& self, const nb::bytes& data, int root) {
  const auto communicator = self->held();
  const auto mine = bytes_of(data);
  std::vector<Bytes> all;
  run_interruptibly([&] { all = kolo::gather_bytes(*communicator, mine, root); },
                    [&] { interrupt_all(communicator); });
  return list_of(all);
}

nb::bytes broadcast_bytes(const SharedWorld& self, const nb::bytes& data, int root) {
  const auto communicator = self->held();
  const auto mine = bytes_of(data);
  Bytes all;
  run_interruptibly([&] { all = kolo::broadcast_bytes(*communicator, mine, root); },
                    [&] { interrupt_all(communicator); });
  return nb::bytes(all.data(), all.size());
}

}  // namespace

void bind_messages(WorldClass& world) {
  const auto call = nb::arg("call").none();
  world.def("send", send, "data"_a, "to"_a, call, "waits"_a)
      .def("receive", receive, "out"_a, "source"_a, call, "waits"_a)
      .def("send_receive", send_receive, "data"_a, "to"_a, "out"_a, "source"_a, call)
      .def("all_gather_bytes", all_gather_bytes, "data"_a)
      .def("gather_bytes", gather_bytes, "data"_a, "root"_a)
      .def("broadcast_bytes", broadcast_bytes, "data"_a, "root"_a);
}

}  // namespace kolo::python
