// Reduction of a call, from Python's argument `op`.
#pragma once

#include <memory>

#include "collectives/python/src/calls.h"

namespace kolo::python {

// A flight for the arrays of one call. Its result is `out`, or None if that has no memory.
std::shared_ptr<Flight> make_flight(nb::handle in, nb::handle out);

// Of a call in one array.
std::shared_ptr<Flight> make_flight_in_place(nb::handle data);

// Of a ReduceOp or a UserReduceOp; gives the flight's arrays the elements of the latter. ValueError
// for a sum of bools, TypeError for another object. `op` must outlive the result.
Reduction reduction_of(nb::handle op, Flight& flight);

}  // namespace kolo::python
