#include "collectives/python/src/reductions.h"

namespace kolo::python {

namespace {

nb::object result_of(nb::handle out) {
  return nb::isinstance<Count>(out) ? nb::object(nb::none()) : nb::borrow(out);
}

}  // namespace

std::shared_ptr<Flight> make_flight(nb::handle in, nb::handle out) {
  if (in.is(out)) return make_flight_in_place(in);
  auto flight = std::make_shared<Flight>();
  flight->in = Array(in, Access::kRead, "the input");
  flight->out = Array(out, Access::kWrite, "the output");
  flight->result = result_of(out);
  return flight;
}

std::shared_ptr<Flight> make_flight_in_place(nb::handle data) {
  auto flight = std::make_shared<Flight>();
  flight->out = Array(data, Access::kWrite, "the array");
  flight->is_in_place = true;
  flight->result = result_of(data);
  return flight;
}

Reduction reduction_of(nb::handle op, Flight& flight) {
  if (nb::isinstance<UserReduceOp>(op)) {
    const auto& user = nb::cast<const UserReduceOp&>(op);
    flight.in.set_user_elements(user);
    flight.out.set_user_elements(user);
    return user;
  }
  if (!nb::isinstance<ReduceOp>(op)) {
    throw nb::type_error((std::string("op: expected a kolo.ReduceOp or kolo.UserOp, not ") +
                          nb::str(op.type().attr("__name__")).c_str())
                             .c_str());
  }
  const auto named = nb::cast<ReduceOp>(op);
  const bool adds = named == ReduceOp::kSum || named == ReduceOp::kAverage;
  if (adds && (flight.in.is_bool() || flight.out.is_bool())) {
    throw nb::value_error(
        "bools have no sum; pass ReduceOp.BIT_OR, BIT_AND, MIN or MAX, or a view as uint8");
  }
  return named;
}

}  // namespace kolo::python
